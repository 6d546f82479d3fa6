#include "seq2seq_layers.h"

#include <cmath>
#include <vector>

#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/tensor/finfo.h"

namespace calque {

namespace {

using Positions = Seq2SeqStyle::Positions;

// Sines of the even columns' angles, then cosines of the odd columns', in double precision.
Tensor sines(int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  const int64_t half = (columns + 1) / 2;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t pair = column / 2;
      const double frequency = std::pow(10000.0, static_cast<double>(2 * pair) / static_cast<double>(columns));
      const double angle = static_cast<double>(row) / frequency;
      const int64_t place = column % 2 == 0 ? column / 2 : half + column / 2;
      values[static_cast<size_t>(row * columns + place)] =
          static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return tensor_of<float>(values, {rows, columns});
}

// Half precision overflows in the layers of large models: back into its range.
Tensor clamped(const Tensor& x, bool only_when_infinite) {
  if (x.dtype() != DType::float16) return x;
  const double largest = largest_finite(DType::float16);
  if (!only_when_infinite) return clamp(x, -(largest - 1000), largest - 1000);
  return where(isfinite(x).all(), x, clamp(x, -(largest - 1000), largest - 1000));
}

Tensor factors(const Tensor& head_mask) { return head_mask.defined() ? head_mask.view({1, -1, 1, 1}) : head_mask; }

}  // namespace

PositionEmbedding::PositionEmbedding(const Seq2SeqStyle& style, int64_t num_positions, int64_t embedding_dim,
                                     std::optional<int64_t> padding_idx)
    : style(&style), num_positions(num_positions), embedding_dim(embedding_dim), padding_idx(padding_idx) {
  const SymInts sizes = {num_positions + style.position_offset, embedding_dim};
  if (style.positions == Positions::sinusoidal_of_ids && !style.saved_sinusoids) {
    weights.emplace(register_buffer(
        "weights", sinusoidal_table(num_positions + style.position_offset, embedding_dim, padding_idx), false));
  } else {
    weight.emplace(register_parameter(style.saved_sinusoids ? "weights" : "weight", empty(sizes)));
    if (style.positions != Positions::learned) (**weight).set_requires_grad(false);
  }
  reset(1);
}

std::string PositionEmbedding::type_name() const {
  return style->type(style->positions == Positions::learned ? style->learned_positions : "SinusoidalPositionalEmbedding");
}

std::string PositionEmbedding::extra_repr() const {
  return style->positions == Positions::sinusoidal_of_ids
             ? ""
             : std::to_string(num_positions + style->position_offset) + ", " + std::to_string(embedding_dim);
}

void PositionEmbedding::reset(double deviation) {
  const int64_t rows = num_positions + style->position_offset;
  const GradModeScope no_grad(false);
  switch (style->positions) {
    case Positions::learned: init::normal_(**weight, 0, deviation); break;
    case Positions::sinusoidal:
      if ((**weight).device().type != DeviceType::meta) (**weight).copy_(sines(rows, embedding_dim));
      break;
    case Positions::sinusoidal_of_ids:
      if (table().device().type != DeviceType::meta) table().copy_(sinusoidal_table(rows, embedding_dim, padding_idx));
      break;
  }
}

Tensor PositionEmbedding::forward(const Tensor& position_ids, const SymInt& rows) {
  if (style->positions == Positions::sinusoidal_of_ids) return sinusoids_at(position_ids, rows, table(), padding_idx);
  return functional::embedding(style->position_offset == 0 ? position_ids : position_ids + style->position_offset, **weight);
}

Seq2SeqAttention::Seq2SeqAttention(const Seq2SeqStyle& style, int64_t size, int64_t heads, double dropout)
    : style(&style),
      heads(heads),
      head_size(size / heads),
      dropout(dropout),
      k_proj(child<Linear>("k_proj", size, size, style.key_bias)),
      v_proj(child<Linear>("v_proj", size, size)),
      q_proj(child<Linear>("q_proj", size, size)),
      out_proj(child<Linear>("out_proj", size, size)) {}

Seq2SeqAttention::Result Seq2SeqAttention::forward(const Tensor& hidden_states, const Tensor& key_value_states,
                                                   const LayerCache& past, const AttentionMask& mask,
                                                   const Tensor& head_mask, bool eager) {
  const Tensor query = split_heads(q_proj(hidden_states), heads, head_size);
  LayerCache now = past;
  const bool across = key_value_states.defined();
  if (!across) {
    const Tensor key = split_heads(k_proj(hidden_states), heads, head_size);
    now = past.updated(key, split_heads(v_proj(hidden_states), heads, head_size));
  } else if (!past.cross_key.defined()) {
    now.cross_key = split_heads(k_proj(key_value_states), heads, head_size);
    now.cross_value = split_heads(v_proj(key_value_states), heads, head_size);
  }
  const AttentionResult attended =
      attend(query, across ? now.cross_key : now.key, across ? now.cross_value : now.value, mask,
             {.dropout = training() ? dropout : 0, .eager = eager, .head_mask = factors(head_mask)});
  return {out_proj(attended.output), attended.weights, now};
}

Seq2SeqEncoderLayer::Seq2SeqEncoderLayer(const Seq2SeqStyle& style, const Config& config)
    : style(&style),
      dropout(config.number("dropout")),
      activation_dropout(config.number("activation_dropout")),
      activation(activation_named(config.text("activation_function"))),
      self_attn(child<Seq2SeqAttention>("self_attn", style, config.integer("d_model"),
                                        config.integer("encoder_attention_heads"), config.number("attention_dropout"))),
      self_attn_layer_norm(child<LayerNorm>("self_attn_layer_norm", config.integer("d_model"))),
      fc1(child<Linear>("fc1", config.integer("d_model"), config.integer("encoder_ffn_dim"))),
      fc2(child<Linear>("fc2", config.integer("encoder_ffn_dim"), config.integer("d_model"))),
      final_layer_norm(child<LayerNorm>("final_layer_norm", config.integer("d_model"))) {}

Seq2SeqEncoderLayer::Result Seq2SeqEncoderLayer::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                         const Tensor& head_mask, bool eager) {
  const bool before = style->pre_norm;
  Tensor x = hidden_states;
  const auto [attended, weights, none] =
      self_attn(before ? self_attn_layer_norm(x) : x, Tensor(), LayerCache(), mask, head_mask, eager);
  x = x + functional::dropout(attended, dropout, training());
  if (!before) x = self_attn_layer_norm(x);

  Tensor y = activation(fc1(before ? final_layer_norm(x) : x));
  y = fc2(functional::dropout(y, activation_dropout, training()));
  x = x + functional::dropout(y, dropout, training());
  if (!before) x = final_layer_norm(x);
  return {clamped(x, !before), weights};
}

Seq2SeqDecoderLayer::Seq2SeqDecoderLayer(const Seq2SeqStyle& style, const Config& config)
    : style(&style),
      dropout(config.number("dropout")),
      activation_dropout(config.number("activation_dropout")),
      activation(activation_named(config.text("activation_function"))),
      self_attn(child<Seq2SeqAttention>("self_attn", style, config.integer("d_model"),
                                        config.integer("decoder_attention_heads"), config.number("attention_dropout"))),
      self_attn_layer_norm(child<LayerNorm>("self_attn_layer_norm", config.integer("d_model"))),
      encoder_attn(child<Seq2SeqAttention>("encoder_attn", style, config.integer("d_model"),
                                           config.integer("decoder_attention_heads"), config.number("attention_dropout"))),
      encoder_attn_layer_norm(child<LayerNorm>("encoder_attn_layer_norm", config.integer("d_model"))),
      fc1(child<Linear>("fc1", config.integer("d_model"), config.integer("decoder_ffn_dim"))),
      fc2(child<Linear>("fc2", config.integer("decoder_ffn_dim"), config.integer("d_model"))),
      final_layer_norm(child<LayerNorm>("final_layer_norm", config.integer("d_model"))) {}

Seq2SeqDecoderLayer::Result Seq2SeqDecoderLayer::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                         const Tensor& encoder_hidden_states,
                                                         const AttentionMask& encoder_mask, const LayerCache& past,
                                                         const Tensor& head_mask, const Tensor& cross_head_mask,
                                                         bool eager) {
  const bool before = style->pre_norm;
  Tensor x = hidden_states;
  auto [attended, weights, now] = self_attn(before ? self_attn_layer_norm(x) : x, Tensor(), past, mask, head_mask, eager);
  x = x + functional::dropout(attended, dropout, training());
  if (!before) x = self_attn_layer_norm(x);

  Tensor cross_weights;
  if (encoder_hidden_states.defined()) {
    const auto [across, found, both] = encoder_attn(before ? encoder_attn_layer_norm(x) : x, encoder_hidden_states, now,
                                                    encoder_mask, cross_head_mask, eager);
    x = x + functional::dropout(across, dropout, training());
    if (!before) x = encoder_attn_layer_norm(x);
    cross_weights = found;
    now = both;
  }

  Tensor y = activation(fc1(before ? final_layer_norm(x) : x));
  y = fc2(functional::dropout(y, activation_dropout, training()));
  x = x + functional::dropout(y, dropout, training());
  if (!before) x = final_layer_norm(x);
  return {x, weights, cross_weights, now};
}

}  // namespace calque
