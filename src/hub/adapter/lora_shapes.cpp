// LoRA on embeddings, on convolutions and on single parameters.
#include <algorithm>

#include "calque/base/error.h"
#include "calque/hub/adaptable.h"
#include "calque/nn/convolution.h"
#include "calque/nn/functional.h"
#include "calque/nn/functional_call.h"
#include "calque/nn/init.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/random.h"
#include "hub/adapter/lora_kinds.h"

namespace calque::adapter {
namespace {

// ---- embeddings -------------------------------------------------------------------------------------------------------

class LoraEmbedding final : public LoraLayer {
 public:
  explicit LoraEmbedding(std::shared_ptr<Module> base) : LoraLayer(std::move(base)) {}
  std::string type_name() const override { return "peft.tuners.lora.layer.Embedding"; }

  std::pair<Tensor, Tensor> factors(const std::string& name) const override {
    return {(*embedding_a_)[name], (*embedding_b_)[name]};
  }
  Tensor delta(const std::string& name) const override {
    const auto [a, b] = factors(name);
    const bool wide = a.dtype() == DType::float16 || a.dtype() == DType::bfloat16;
    const Tensor whole = wide ? matmul(b.to(DType::float32), a.to(DType::float32)) : matmul(b, a);
    const Tensor change = whole.t() * Scalar(scaling_.at(name));
    return wide ? change.to(a.dtype()) : change;
  }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new LoraEmbedding(*this)); }
  const Embedding& table() const { return dynamic_cast<const Embedding&>(innermost()); }

  void check(const LoraSettings& settings) const override {
    if (settings.bias)
      throw UserError("lora_bias=true is not supported for embeddings; leave them out of the target_modules");
  }
  void make(const std::string& name, const LoraSettings& settings) override {
    const Tensor a = randn({settings.r, table().num_embeddings});
    const Tensor b = randn({table().embedding_dim, settings.r});
    embedding_a_->set(name, a);
    embedding_b_->set(name, b);
  }
  void start(const std::string& name, const LoraSettings&) override {
    init::zeros_((*embedding_a_)[name]);
    init::normal_((*embedding_b_)[name]);
  }

  Tensor looked_up(const Tensor& ids, const Tensor& weight) const {
    const EmbeddingOptions& o = table().options;
    return functional::embedding(ids, weight, o.padding_idx, o.max_norm, o.norm_type, o.scale_grad_by_freq, o.sparse);
  }
  Tensor scaled(const Tensor& change) const {
    const auto* scales = dynamic_cast<const ScaledEmbeddings*>(&innermost());
    return scales ? change * scales->scale_of_embeddings().to(change.dtype()) : change;
  }

  Tensor apply(const std::string& name, const Tensor& ids, const Tensor& result) override {
    const Tensor a = (*embedding_a_)[name].t(), b = (*embedding_b_)[name].t();
    const Scalar scaling(scaling_.at(name));
    if (!settings_.at(name).dora) return result + scaled(matmul(looked_up(ids, a), b) * scaling);
    const Tensor both = matmul(a, b).t().detach();
    const Tensor scale = magnitude(name) / row_lengths(base_weight(), both, scaling_.at(name)).detach();
    return scale * result + scaled(scale * matmul(looked_up(ids, a), b) * scaling);
  }

  Tensor row_lengths(const Tensor& weight, const Tensor& product, double scaling) const override {
    return linalg_vector_norm(weight.t() + product * Scalar(scaling), 2, {1}).to(weight.dtype());
  }
  Tensor as_factor(const Tensor& scale) const override { return scale.view({1, -1}); }
  Tensor product(const std::string& name) const override { return matmul((*embedding_b_)[name], (*embedding_a_)[name]); }
  Tensor product_of_delta(const Tensor& delta) const override { return delta.t(); }
};

// ---- convolutions -----------------------------------------------------------------------------------------------------

std::shared_ptr<Module> convolution_like(const ConvBase& base, int64_t in, int64_t out, bool whole, bool bias) {
  ConvOptions options;
  options.bias = bias;
  if (whole) {
    options.stride = base.stride;
    options.padding = base.padding_name.empty() ? std::variant<Sizes, std::string>(Sizes(base.padding))
                                                : std::variant<Sizes, std::string>(base.padding_name);
  } else {
    options.groups = base.groups;
  }
  const Sizes kernel = whole ? Sizes(base.kernel_size) : Sizes(std::vector<int64_t>(base.dims, 1));
  if (base.dims == 1) return std::make_shared<Conv1d>(in, out, kernel, options);
  if (base.dims == 2) return std::make_shared<Conv2d>(in, out, kernel, options);
  return std::make_shared<Conv3d>(in, out, kernel, options);
}

class LoraConvolution final : public LoraLayer {
 public:
  explicit LoraConvolution(std::shared_ptr<Module> base) : LoraLayer(std::move(base)) {}
  std::string type_name() const override { return "peft.tuners.lora.layer.Conv" + std::to_string(convolution().dims) + "d"; }

  Tensor delta(const std::string& name) const override {
    Tensor a = weight_a(name), b = weight_b(name);
    const DType dtype = a.dtype();
    const bool wide = dtype == DType::float16 || dtype == DType::bfloat16;
    if (wide) a = a.to(DType::float32), b = b.to(DType::float32);
    const Scalar scaling(scaling_.at(name));
    const Tensor& weight = base_weight();
    Tensor change;
    if (convolution().dims == 2 && weight.size(2) == 1 && weight.size(3) == 1) {
      change = matmul(b.squeeze(3).squeeze(2), a.squeeze(3).squeeze(2)).unsqueeze(2).unsqueeze(3) * scaling;
    } else {
      const Tensor inner = a.transpose(0, 1);
      const Tensor whole = convolution().dims == 1   ? conv1d(inner, b)
                           : convolution().dims == 2 ? conv2d(inner, b)
                                                     : conv3d(inner, b);
      change = whole.transpose(0, 1) * scaling;
    }
    return wide ? change.to(dtype) : change;
  }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new LoraConvolution(*this)); }
  const ConvBase& convolution() const { return dynamic_cast<const ConvBase&>(innermost()); }

  void check(const LoraSettings& settings) const override {
    if (settings.r % convolution().groups != 0)
      throw UserError("LoRA on a " + innermost().class_name() + " with " + std::to_string(convolution().groups) +
                      " groups: the rank " + std::to_string(settings.r) +
                      " has to be a multiple of them; take another rank, or leave the layer out of the target_modules");
  }
  void make(const std::string& name, const LoraSettings& settings) override {
    const ConvBase& base = convolution();
    lora_a_->set(name, convolution_like(base, base.in_channels, settings.r, true, false));
    lora_b_->set(name, convolution_like(base, settings.r, base.out_channels, false, settings.bias));
  }
  void merge_one(const std::string& name, bool safe) override {
    if (convolution().groups > 1) throw UserError("merging LoRA into a convolution with groups is not supported");
    LoraLayer::merge_one(name, safe);
  }

  Tensor apply(const std::string& name, const Tensor& x, const Tensor& result) override {
    return apply_layers(name, x, result);
  }
  Tensor scale_of_call(const std::string& name, const Tensor&) const override {
    return magnitude(name) / row_lengths(base_weight(), product(name).detach(), scaling_.at(name)).detach();
  }
  Tensor bias_of_result(const Tensor& bias, int64_t dims) const override {
    std::vector<int64_t> form(static_cast<size_t>(dims), 1);
    form[1] = -1;
    return bias.view(nn_detail::sym(form));
  }

  Tensor row_lengths(const Tensor& weight, const Tensor& product, double scaling) const override {
    std::vector<int64_t> dims;
    for (int64_t d = 1; d < weight.dim(); ++d) dims.push_back(d);
    return (weight + product * Scalar(scaling)).norm(Scalar(2), dims, true).transpose(1, 0);
  }
  Tensor as_factor(const Tensor& scale) const override {
    std::vector<int64_t> form(static_cast<size_t>(base_weight().dim()), 1);
    form[0] = -1;
    return scale.view(nn_detail::sym(form));
  }
  Tensor product(const std::string& name) const override {
    const Tensor &a = weight_a(name), &b = weight_b(name);
    const int64_t r = a.size(0);
    return mm(b.reshape({-1, r}), a.reshape({r, -1})).reshape(base_weight().sym_sizes());
  }
};

// ---- parameters -------------------------------------------------------------------------------------------------------

class LoraParameter final : public LoraLayer {
 public:
  LoraParameter(std::shared_ptr<Module> base, std::string parameter)
      : LoraLayer(std::move(base)), parameter_(std::move(parameter)) {
    const Tensor& weight = base_weight();
    if (weight.dim() == 3) {
      const auto* experts = dynamic_cast<const StackedExperts*>(&innermost());
      experts_ = weight.size(0);
      in_ = weight.size(1);
      out_ = weight.size(2);
      swapped_ = !experts || !experts->is_transposed();
      if (swapped_) std::swap(in_, out_);
    } else if (weight.dim() == 2) {
      in_ = weight.size(1);
      out_ = weight.size(0);
    } else {
      throw UserError("target_parameters: " + parameter_ + " of a " + innermost().class_name() + " has " +
                      std::to_string(weight.dim()) + " dimensions, expected two or three");
    }
  }
  std::string type_name() const override { return "peft.tuners.lora.layer.ParamWrapper"; }
  const std::string& parameter() const { return parameter_; }
  const Tensor& base_weight() const override { return innermost().get_parameter(parameter_); }

  Tensor delta(const std::string& name) const override {
    const Tensor &a = weight_a(name), &b = weight_b(name), &weight = base_weight();
    const Scalar scaling(scaling_.at(name));
    if (experts_ == 1) return (matmul(b, a) * scaling).to(weight.dtype());
    const Tensor inner = a.reshape({experts_, -1, a.size(-1)});
    const Tensor outer = b.reshape({b.size(0), -1, experts_});
    const char* sum = swapped_ ? "o r e, e r i -> e o i" : "o r e, e r i -> e i o";
    return (einsum(sum, {outer, inner}) * scaling).to(weight.dtype());
  }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new LoraParameter(*this)); }

  void check(const LoraSettings& settings) const override {
    const auto refuse = [&](const char* what) {
      throw UserError("target_parameters (" + parameter_ + ") do not go together with " + what);
    };
    if (settings.dropout > 0) refuse("lora_dropout");
    if (settings.bias) refuse("lora_bias");
    if (settings.dora) refuse("use_dora");
  }
  void make(const std::string& name, const LoraSettings& settings) override {
    lora_a_->set(name, std::make_shared<Linear>(in_, settings.r * experts_, false));
    lora_b_->set(name, std::make_shared<Linear>(settings.r * experts_, out_, false));
  }

  // One adapter of several experts is added by the product itself, without a tensor of the weight's size between.
  Tensor adapted(const std::vector<std::string>& names) const {
    const Tensor& weight = base_weight();
    if (names.size() == 1 && experts_ > 1) {
      const Tensor &a = weight_a(names[0]), &b = weight_b(names[0]);
      const Tensor inner = a.reshape({experts_, -1, a.size(-1)});
      const Tensor outer = b.reshape({b.size(0), -1, experts_}).permute({2, 0, 1});
      const Tensor left = swapped_ ? outer : inner.transpose(-2, -1), right = swapped_ ? inner : outer.transpose(-2, -1);
      return baddbmm(weight, left.to(weight.dtype()), right.to(weight.dtype()), 1, Scalar(scaling_.at(names[0])));
    }
    Tensor change = delta(names[0]);
    for (size_t i = 1; i < names.size(); ++i) change = change + delta(names[i]);
    return weight + change;
  }

  Value call_adapted(const Values& args, const Kwargs& kwargs) override {
    std::vector<std::string> names;
    for (const std::string& name : active_)
      if (settings_.contains(name)) names.push_back(name);
    std::optional<FunctionalCall> exchange;
    if (!names.empty()) exchange.emplace(innermost(), StateDict{{parameter_, adapted(names)}});
    return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
  }

  Tensor apply(const std::string&, const Tensor&, const Tensor& result) override { return result; }
  Tensor row_lengths(const Tensor&, const Tensor&, double) const override { return {}; }
  Tensor as_factor(const Tensor& scale) const override { return scale; }
  Tensor product(const std::string&) const override { return {}; }

  std::string parameter_;
  int64_t experts_ = 1, in_ = 0, out_ = 0;
  bool swapped_ = false;  // stored as (experts, out, in)
};

}  // namespace

std::shared_ptr<LoraLayer> make_lora_layer(const std::shared_ptr<Module>& target, bool& fan_in_fan_out) {
  if (is_matrix_layer(*target, fan_in_fan_out)) {
    return make_lora_linear(target, fan_in_fan_out);
  }
  if (dynamic_cast<const Embedding*>(target.get())) return std::make_shared<LoraEmbedding>(target);
  if (dynamic_cast<const Conv1d*>(target.get()) || dynamic_cast<const Conv2d*>(target.get()) ||
      dynamic_cast<const Conv3d*>(target.get()))
    return std::make_shared<LoraConvolution>(target);
  return nullptr;
}

std::shared_ptr<LoraLayer> make_lora_parameter(const std::shared_ptr<Module>& target, const std::string& parameter) {
  return std::make_shared<LoraParameter>(target, parameter);
}

LoraLayer* find_lora_parameter(Module* module, const std::string& parameter) {
  while (auto* layer = dynamic_cast<LoraParameter*>(module)) {
    if (layer->parameter() == parameter) return layer;
    module = &layer->base_layer();
  }
  return nullptr;
}

}  // namespace calque::adapter
