#include "calque/nn/linear.h"

#include <cmath>

#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/nn/meta_parameters.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/tensor/number_text.h"

namespace calque {

using nn_detail::text;

static Tensor fresh(SymIntList sizes, const Factory& factory, bool wanted = true) {
  if (!wanted) return {};
  // What will have no data need not be allocated first.
  const bool no_data = MetaParametersScope::active() && !factory.device;
  return empty(sizes, factory.dtype, std::nullopt, no_data ? Device(DeviceType::meta) : factory.device);
}

Linear::Linear(int64_t in_features, int64_t out_features, bool bias, Factory factory)
    : in_features(in_features),
      out_features(out_features),
      weight(register_parameter("weight", fresh({out_features, in_features}, factory))),
      bias(register_parameter("bias", fresh({out_features}, factory, bias))) {
  reset_parameters();
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(const Tensor& input) { return linear(input, weight, bias); }

std::string Linear::extra_repr() const {
  return "in_features=" + std::to_string(in_features) + ", out_features=" + std::to_string(out_features) +
         ", bias=" + text(bias.defined());
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool bias, Factory factory)
    : in1_features(in1_features),
      in2_features(in2_features),
      out_features(out_features),
      weight(register_parameter("weight", fresh({out_features, in1_features, in2_features}, factory))),
      bias(register_parameter("bias", fresh({out_features}, factory, bias))) {
  if (in1_features <= 0) throw UserError("in1_features must be > 0, but got " + std::to_string(in1_features));
  reset_parameters();
}

void Bilinear::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(in1_features));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor Bilinear::forward(const Tensor& input1, const Tensor& input2) { return bilinear(input1, input2, weight, bias); }

std::string Bilinear::extra_repr() const {
  return "in1_features=" + std::to_string(in1_features) + ", in2_features=" + std::to_string(in2_features) +
         ", out_features=" + std::to_string(out_features) + ", bias=" + text(bias.defined());
}

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions given)
    : num_embeddings(num_embeddings),
      embedding_dim(embedding_dim),
      options(given),
      weight(register_parameter("weight", fresh({num_embeddings, embedding_dim}, given.factory))) {
  if (options.padding_idx) {
    if (*options.padding_idx >= num_embeddings || *options.padding_idx < -num_embeddings)
      throw UserError("Padding_idx must be within num_embeddings");
    if (*options.padding_idx < 0) *options.padding_idx += num_embeddings;
  }
  reset_parameters();
}

std::shared_ptr<Embedding> Embedding::from_pretrained(const Tensor& embeddings, bool freeze, EmbeddingOptions options) {
  if (embeddings.dim() != 2) throw UserError("Embeddings parameter is expected to be 2-dimensional");
  options.factory.device = Device(DeviceType::meta);  // the weight that is made is not kept
  auto made = std::make_shared<Embedding>(embeddings.size(0), embeddings.size(1), options);
  made->register_parameter("weight", embeddings, !freeze);
  return made;
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx) return;
  const GradModeScope no_grad(false);
  weight->select(0, *options.padding_idx).fill_(0);
}

Tensor Embedding::forward(const Tensor& input) {
  return functional::embedding(input, weight, options.padding_idx, options.max_norm, options.norm_type,
                               options.scale_grad_by_freq, options.sparse);
}

std::string Embedding::extra_repr() const {
  std::string out = std::to_string(num_embeddings) + ", " + std::to_string(embedding_dim);
  if (options.padding_idx) out += ", padding_idx=" + std::to_string(*options.padding_idx);
  if (options.max_norm) out += ", max_norm=" + python_repr(*options.max_norm);
  if (options.norm_type != 2) out += ", norm_type=" + python_repr(options.norm_type);
  if (options.scale_grad_by_freq) out += ", scale_grad_by_freq=True";
  if (options.sparse) out += ", sparse=True";
  return out;
}

}  // namespace calque
