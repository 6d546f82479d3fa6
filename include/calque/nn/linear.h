// Layers of dense weights: Linear, Bilinear, Identity, Embedding.
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct Identity : Typed<Identity> {
  static constexpr const char* torch_type = "torch.nn.modules.linear.Identity";
  Tensor forward(const Tensor& input) { return input; }
};

struct Linear : Typed<Linear> {
  static constexpr const char* torch_type = "torch.nn.modules.linear.Linear";
  Linear(int64_t in_features, int64_t out_features, bool bias = true, Factory factory = {});
  void reset_parameters();
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;

  int64_t in_features;
  int64_t out_features;
  Parameter weight;  // (out_features, in_features)
  Parameter bias;
};

// The output projection of MultiheadAttention, which PyTorch gives a name of its own.
struct NonDynamicallyQuantizableLinear : Typed<NonDynamicallyQuantizableLinear, Linear> {
  static constexpr const char* torch_type = "torch.nn.modules.linear.NonDynamicallyQuantizableLinear";
  using Typed::Typed;
};

struct Bilinear : Typed<Bilinear> {
  static constexpr const char* torch_type = "torch.nn.modules.linear.Bilinear";
  static constexpr const char* forward_arguments[] = {"input1", "input2"};
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool bias = true, Factory factory = {});
  void reset_parameters();
  Tensor forward(const Tensor& input1, const Tensor& input2);
  std::string extra_repr() const override;

  int64_t in1_features;
  int64_t in2_features;
  int64_t out_features;
  Parameter weight;
  Parameter bias;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = std::nullopt;  // its row starts as zeros
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  bool sparse = false;
  Factory factory = {};
};

struct Embedding : Typed<Embedding> {
  static constexpr const char* torch_type = "torch.nn.modules.sparse.Embedding";
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options = {});
  static std::shared_ptr<Embedding> from_pretrained(const Tensor& embeddings, bool freeze = true,
                                                    EmbeddingOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& input);
  std::string extra_repr() const override;

  int64_t num_embeddings;
  int64_t embedding_dim;
  EmbeddingOptions options;
  Parameter weight;
};

}  // namespace calque
