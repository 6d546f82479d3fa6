// MultiheadAttention and the Transformer layers built on it. Always computed by the plain operators: PyTorch's fused
// inference path is not taken (its results differ in the last bits only).
#pragma once

#include <functional>

#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"

namespace calque {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  std::optional<int64_t> kdim = std::nullopt;
  std::optional<int64_t> vdim = std::nullopt;
  bool batch_first = false;
  Factory factory = {};
};

struct MultiheadAttention : Typed<MultiheadAttention> {
  static constexpr const char* torch_type = "torch.nn.modules.activation.MultiheadAttention";
  static constexpr const char* forward_arguments[] = {
      "query", "key", "value", "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal"};
  static Values forward_defaults() { return {Value(), true, Value(), true, false}; }
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {});
  void reset_parameters();
  // The output and, if asked for, the weights (undefined otherwise).
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true, bool is_causal = false);

  int64_t embed_dim, kdim, vdim, num_heads;
  double dropout;
  bool batch_first, add_zero_attn;
  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Child<NonDynamicallyQuantizableLinear> out_proj;
  Tensor bias_k() const;  // undefined unless add_bias_kv
  Tensor bias_v() const;
};

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
  Factory factory = {};
};

struct TransformerEncoderLayer : Typed<TransformerEncoderLayer> {
  static constexpr const char* torch_type = "torch.nn.modules.transformer.TransformerEncoderLayer";
  static constexpr const char* forward_arguments[] = {"src", "src_mask", "src_key_padding_mask", "is_causal"};
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {},
                 bool is_causal = false);

  bool norm_first;
  std::string activation;
  Child<MultiheadAttention> self_attn;
  Child<Linear> linear1;
  Child<Dropout> dropout;
  Child<Linear> linear2;
  Child<LayerNorm> norm1, norm2;
  Child<Dropout> dropout1, dropout2;
};

struct TransformerDecoderLayer : Typed<TransformerDecoderLayer> {
  static constexpr const char* torch_type = "torch.nn.modules.transformer.TransformerDecoderLayer";
  static constexpr const char* forward_arguments[] = {
      "tgt",           "memory",          "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask",
      "tgt_is_causal", "memory_is_causal"};
  static Values forward_defaults() { return {false, false}; }
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {},
                 bool tgt_is_causal = false, bool memory_is_causal = false);

  bool norm_first;
  std::string activation;
  Child<MultiheadAttention> self_attn, multihead_attn;
  Child<Linear> linear1;
  Child<Dropout> dropout;
  Child<Linear> linear2;
  Child<LayerNorm> norm1, norm2, norm3;
  Child<Dropout> dropout1, dropout2, dropout3;
};

struct TransformerEncoder : Typed<TransformerEncoder> {
  static constexpr const char* torch_type = "torch.nn.modules.transformer.TransformerEncoder";
  static constexpr const char* forward_arguments[] = {"src", "mask", "src_key_padding_mask", "is_causal"};
  // The layers are copies of the one given.
  TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                     std::shared_ptr<Module> norm = nullptr);
  // Without `is_causal` the mask is looked at.
  Tensor forward(const Tensor& src, const Tensor& mask = {}, const Tensor& src_key_padding_mask = {},
                 std::optional<bool> is_causal = std::nullopt);

  Child<ModuleList> layers;
  std::optional<Child<Module>> norm;
};

struct TransformerDecoder : Typed<TransformerDecoder> {
  static constexpr const char* torch_type = "torch.nn.modules.transformer.TransformerDecoder";
  static constexpr const char* forward_arguments[] = {
      "tgt",           "memory",          "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask",
      "tgt_is_causal", "memory_is_causal"};
  TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                     std::shared_ptr<Module> norm = nullptr);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {},
                 std::optional<bool> tgt_is_causal = std::nullopt, bool memory_is_causal = false);

  Child<ModuleList> layers;
  std::optional<Child<Module>> norm;
};

// -inf above the diagonal, 0 elsewhere.
Tensor generate_square_subsequent_mask(int64_t size, Factory factory = {});

}  // namespace calque
