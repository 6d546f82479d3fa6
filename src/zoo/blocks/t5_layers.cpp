#include "t5_layers.h"

#include <cmath>

#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"

namespace calque {

namespace {

// Half precision overflows in the layers of large models: back into its range.
Tensor in_half_range(const Tensor& x) {
  if (x.dtype() != DType::float16) return x;
  const double largest = largest_finite(DType::float16);
  return where(isinf(x).any(), clamp(x, -(largest - 1000), largest - 1000), x);
}

}  // namespace

T5LayerNorm::T5LayerNorm(const T5Style& style, int64_t size, double eps)
    : style(&style), eps(eps), weight(register_parameter("weight", ones({size}))) {}

Tensor T5LayerNorm::forward(const Tensor& hidden_states) {
  const Tensor variance = pow(hidden_states.to(DType::float32), 2).mean({-1}, true);
  const Tensor scaled = hidden_states * rsqrt(variance + eps);
  const DType dtype = weight->dtype();
  const bool narrow = dtype == DType::float16 || dtype == DType::bfloat16;
  return *weight * (narrow ? scaled.to(dtype) : scaled);
}

T5FeedForward::T5FeedForward(const T5Style& style, const Config& c)
    : style(&style),
      gated(c.flag("is_gated_act")),
      activation(activation_named(c.text("dense_act_fn"))),
      wi(child<Linear>(gated ? "wi_0" : "wi", c.integer("d_model"), c.integer("d_ff"), false)),
      linear(gated ? std::optional(child<Linear>("wi_1", c.integer("d_model"), c.integer("d_ff"), false)) : std::nullopt),
      wo(child<Linear>("wo", c.integer("d_ff"), c.integer("d_model"), false)),
      dropout(child<Dropout>("dropout", c.number("dropout_rate"))) {}

Tensor T5FeedForward::forward(const Tensor& hidden_states) {
  Tensor x = activation(wi(hidden_states));
  if (linear) x = x * (*linear)(hidden_states);
  x = dropout(x);
  // This weight may be kept in float32 where the others are not.
  const DType dtype = wo->weight->dtype();
  return wo(x.dtype() == dtype ? x : x.to(dtype));
}

T5LayerFF::T5LayerFF(const T5Style& style, const Config& c)
    : style(&style),
      DenseReluDense(child<T5FeedForward>("DenseReluDense", style, c)),
      layer_norm(child<T5LayerNorm>("layer_norm", style, c.integer("d_model"), c.number("layer_norm_epsilon"))),
      dropout(child<Dropout>("dropout", c.number("dropout_rate"))) {}

Tensor T5LayerFF::forward(const Tensor& hidden_states) {
  return hidden_states + dropout(DenseReluDense(layer_norm(hidden_states)));
}

Tensor relative_position_bucket(const Tensor& relative_position, bool bidirectional, int64_t buckets, int64_t max_distance) {
  Tensor first;
  Tensor distance;
  if (bidirectional) {
    buckets /= 2;
    first = gt(relative_position, 0).to(DType::int64) * buckets;
    distance = abs(relative_position);
  } else {
    distance = neg(minimum(relative_position, zeros_like(relative_position)));
  }
  const int64_t exact = buckets / 2;
  const double steps = std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  const Tensor logarithm = log(distance.to(DType::float32) / exact);
  const Tensor far = (logarithm / steps * (buckets - exact)).to(DType::int64) + exact;
  const Tensor shared = minimum(far, full_like(far, buckets - 1));
  const Tensor bucket = where(lt(distance, exact), distance, shared);
  return first.defined() ? first + bucket : bucket;
}

T5Attention::T5Attention(const T5Style& style, const Config& c, bool is_decoder, bool has_relative_attention_bias)
    : style(&style),
      is_decoder(is_decoder),
      heads(c.integer("num_heads")),
      head_size(c.integer("d_kv")),
      buckets(c.integer("relative_attention_num_buckets")),
      max_distance(c.integer("relative_attention_max_distance")),
      dropout(c.number("dropout_rate")),
      q(child<Linear>("q", c.integer("d_model"), heads * head_size, false)),
      k(child<Linear>("k", c.integer("d_model"), heads * head_size, false)),
      v(child<Linear>("v", c.integer("d_model"), heads * head_size, false)),
      o(child<Linear>("o", heads * head_size, c.integer("d_model"), false)),
      relative_attention_bias(has_relative_attention_bias
                                  ? std::optional(child<Embedding>("relative_attention_bias", buckets, heads))
                                  : std::nullopt) {}

Tensor T5Attention::bias(const SymInt& queries, const SymInt& keys, const SymInt& past, const Tensor& like) const {
  const Tensor from = arange(queries, DType::int64, std::nullopt, like.device()).unsqueeze(1) + Scalar(past);
  const Tensor to = arange(keys, DType::int64, std::nullopt, like.device()).unsqueeze(0);
  const Tensor bucket = relative_position_bucket(to - from, !is_decoder, buckets, max_distance);
  return (*relative_attention_bias)(bucket).permute({2, 0, 1}).unsqueeze(0);
}

void T5Attention::prune_heads(const std::vector<int64_t>& asked) {
  prune_attention(asked, heads, head_size, pruned_heads, {&*q, &*k, &*v}, *o);
}

Tensor T5Attention::of_heads_left(const Tensor& bias) const {
  if (pruned_heads.empty() || !bias.defined()) return bias;
  std::vector<int64_t> left;
  for (int64_t head = 0; head < heads + std::ssize(pruned_heads); ++head)
    if (!pruned_heads.count(head)) left.push_back(head);
  return bias.index_select(1, tensor_of<int64_t>(left, {heads}));
}

T5Attention::Result T5Attention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                         const Tensor& key_value_states, const Tensor& position_bias, const LayerCache& past,
                                         const Tensor& head_mask, bool eager) {
  const Tensor query = split_heads(q(hidden_states), heads, head_size);
  LayerCache now = past;
  const bool across = key_value_states.defined();
  if (!across) {
    const Tensor key = split_heads(k(hidden_states), heads, head_size);
    now = past.updated(key, split_heads(v(hidden_states), heads, head_size));
  } else if (!past.cross_key.defined()) {
    now.cross_key = split_heads(k(key_value_states), heads, head_size);
    now.cross_value = split_heads(v(key_value_states), heads, head_size);
  }
  const Tensor& key = across ? now.cross_key : now.key;
  Tensor added = position_bias;
  if (!added.defined() && relative_attention_bias)
    added = bias(hidden_states.sym_size(1), key.sym_size(2), past.length(), query);
  const AttentionResult attended = attend(query, key, across ? now.cross_value : now.value, mask,
                                          {.scale = 1,
                                           .dropout = training() ? dropout : 0,
                                           .eager = eager,
                                           .head_mask = head_mask.defined() ? head_mask.view({1, -1, 1, 1}) : head_mask,
                                           .position_bias = of_heads_left(added)});
  return {o(attended.output), added, attended.weights, now};
}

T5LayerAttention::T5LayerAttention(const T5Style& style, const Config& c, bool is_decoder, bool across,
                                   bool has_relative_attention_bias)
    : style(&style),
      across(across),
      attention(child<T5Attention>(across ? "EncDecAttention" : "SelfAttention", style, c, is_decoder,
                                   has_relative_attention_bias)),
      layer_norm(child<T5LayerNorm>("layer_norm", style, c.integer("d_model"), c.number("layer_norm_epsilon"))),
      dropout(child<Dropout>("dropout", c.number("dropout_rate"))) {}

T5Attention::Result T5LayerAttention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                              const Tensor& key_value_states, const Tensor& position_bias,
                                              const LayerCache& past, const Tensor& head_mask, bool eager) {
  auto [attended, bias, weights, now] =
      attention(layer_norm(hidden_states), mask, key_value_states, position_bias, past, head_mask, eager);
  return {hidden_states + dropout(attended), bias, weights, now};
}

T5Block::T5Block(const T5Style& style, const Config& c, bool is_decoder, bool has_relative_attention_bias)
    : style(&style), is_decoder(is_decoder), layer(child<ModuleList>("layer")) {
  layer->emplace<T5LayerAttention>(style, c, is_decoder, false, has_relative_attention_bias);
  if (is_decoder) layer->emplace<T5LayerAttention>(style, c, is_decoder, true, false);
  layer->emplace<T5LayerFF>(style, c);
}

T5Block::Result T5Block::forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& position_bias,
                                 const Tensor& encoder_hidden_states, const AttentionMask& encoder_mask,
                                 const LayerCache& past, const Tensor& head_mask, const Tensor& cross_head_mask,
                                 bool eager) {
  auto [x, bias, weights, now] =
      layer->at<T5LayerAttention>(0)(hidden_states, mask, Tensor(), position_bias, past, head_mask, eager);
  x = in_half_range(x);
  Tensor cross_weights;
  if (is_decoder && encoder_hidden_states.defined()) {
    const auto [y, none, found, both] =
        layer->at<T5LayerAttention>(1)(x, encoder_mask, encoder_hidden_states, Tensor(), now, cross_head_mask, eager);
    x = in_half_range(y);
    cross_weights = found;
    now = both;
  }
  x = layer->at<T5LayerFF>(-1)(x);
  return {in_half_range(x), bias, weights, cross_weights, now};
}

}  // namespace calque
