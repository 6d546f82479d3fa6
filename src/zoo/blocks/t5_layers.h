// The layers of T5 and mT5: norms without a mean, attention with a bias by relative position (made by the first layer,
// handed on to the others), feed-forward with or without a gate. `style` names their classes as transformers does.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "activations.h"
#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/config.h"
#include "calque/hub/prune.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"

namespace calque {

struct T5Style {
  const char* module;  // of transformers: "transformers.models.t5.modeling_t5"
  const char* prefix;  // of the class names: "T5"
  std::string type(const std::string& part) const { return std::string(module) + "." + prefix + part; }
};

struct T5LayerNorm : Typed<T5LayerNorm> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  T5LayerNorm(const T5Style& style, int64_t size, double eps);
  std::string type_name() const override { return style->type("LayerNorm"); }
  Tensor forward(const Tensor& hidden_states);

  const T5Style* style;
  double eps;
  Parameter weight;
};

struct T5FeedForward : Typed<T5FeedForward> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  T5FeedForward(const T5Style& style, const Config& config);
  std::string type_name() const override { return style->type(gated ? "DenseGatedActDense" : "DenseActDense"); }
  Tensor forward(const Tensor& hidden_states);

  const T5Style* style;
  bool gated;
  Activation activation;
  Child<Linear> wi;                     // "wi_0" with a gate
  std::optional<Child<Linear>> linear;  // "wi_1"
  Child<Linear> wo;
  Child<Dropout> dropout;
};

struct T5LayerFF : Typed<T5LayerFF> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  T5LayerFF(const T5Style& style, const Config& config);
  std::string type_name() const override { return style->type("LayerFF"); }
  Tensor forward(const Tensor& hidden_states);

  const T5Style* style;
  Child<T5FeedForward> DenseReluDense;
  Child<T5LayerNorm> layer_norm;
  Child<Dropout> dropout;
};

// The bucket of each distance: small ones have their own, larger ones share in logarithmic steps up to max_distance.
Tensor relative_position_bucket(const Tensor& relative_position, bool bidirectional, int64_t buckets, int64_t max_distance);

struct T5Attention : Typed<T5Attention>, PrunableAttention {
  static constexpr const char* forward_arguments[] = {
      "hidden_states", "mask", "key_value_states", "position_bias", "past_key_values", "layer_head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;  // output, position bias, weights, keys and values

  T5Attention(const T5Style& style, const Config& config, bool is_decoder, bool has_relative_attention_bias);
  std::string type_name() const override { return style->type("Attention"); }
  // With key_value_states it looks across to them; their keys and values are made once and kept in the cache.
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& key_value_states,
                 const Tensor& position_bias, const LayerCache& past, const Tensor& head_mask, bool eager);
  void prune_heads(const std::vector<int64_t>& asked) override;
  bool is_self_attention() const override { return !is_decoder; }  // layers are the encoder's

  const T5Style* style;
  bool is_decoder;
  std::set<int64_t> pruned_heads;
  int64_t heads, head_size, buckets, max_distance;
  double dropout;
  Child<Linear> q, k, v, o;
  std::optional<Child<Embedding>> relative_attention_bias;

 private:
  Tensor bias(const SymInt& queries, const SymInt& keys, const SymInt& past, const Tensor& like) const;
  Tensor of_heads_left(const Tensor& bias) const;  // the bias that is handed on has all heads
};

// Attention to oneself ("SelfAttention") or across ("EncDecAttention"), with its norm in front.
struct T5LayerAttention : Typed<T5LayerAttention> {
  static constexpr const char* forward_arguments[] = {
      "hidden_states", "attention_mask", "key_value_states", "position_bias", "past_key_values", "layer_head_mask", "eager"};
  T5LayerAttention(const T5Style& style, const Config& config, bool is_decoder, bool across,
                   bool has_relative_attention_bias);
  std::string type_name() const override { return style->type(across ? "LayerCrossAttention" : "LayerSelfAttention"); }
  T5Attention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& key_value_states,
                              const Tensor& position_bias, const LayerCache& past, const Tensor& head_mask, bool eager);

  const T5Style* style;
  bool across;
  Child<T5Attention> attention;
  Child<T5LayerNorm> layer_norm;
  Child<Dropout> dropout;
};

struct T5Block : Checkpointed<Typed<T5Block>> {
  static constexpr const char* forward_arguments[] = {"hidden_states",
                                                      "attention_mask",
                                                      "position_bias",
                                                      "encoder_hidden_states",
                                                      "encoder_attention_mask",
                                                      "past_key_values",
                                                      "layer_head_mask",
                                                      "cross_attn_layer_head_mask",
                                                      "eager"};
  // Output, position bias, weights, weights across, keys and values.
  using Result = std::tuple<Tensor, Tensor, Tensor, Tensor, LayerCache>;

  T5Block(const T5Style& style, const Config& config, bool is_decoder, bool has_relative_attention_bias);
  std::string type_name() const override { return style->type("Block"); }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& position_bias,
                 const Tensor& encoder_hidden_states, const AttentionMask& encoder_mask, const LayerCache& past,
                 const Tensor& head_mask, const Tensor& cross_head_mask, bool eager);

  const T5Style* style;
  bool is_decoder;
  Child<ModuleList> layer;
};

}  // namespace calque
