#include "attention.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/dropout.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "calque/tensor/finfo.h"
#include "calque/trace/tracer.h"

namespace calque {

Value AttentionMask::to_value() const { return tuple({mask, is_causal}); }

AttentionMask AttentionMask::from_value(const Value& value) {
  const Values& items = value.to_items();
  return {items.at(0).to_tensor_or_none(), items.at(1).to_bool()};
}

// Padding as a boolean [batch, 1, 1, key].
static Tensor padding_mask(const Tensor& attention_mask) {
  const Tensor kept = attention_mask.dtype() == DType::bool_ ? attention_mask : ne(attention_mask, 0);
  return kept.unsqueeze(1).unsqueeze(1);
}

// Padding of a batch without any: to read it once is cheaper than to apply it in every layer. Whoever records wants the graph for all.
static bool without_padding(const Tensor& attention_mask) {
  return attention_mask.defined() && attention_mask.dim() == 2 && !modes_active() && !attention_mask.is_fake() &&
         attention_mask.numel() > 0 && attention_mask.ne(0).all().item_as<bool>();
}

AttentionMask causal_mask(const Tensor& embeds, const Tensor& given_mask, const CausalMaskOptions& options) {
  if (given_mask.defined() && given_mask.dim() == 4) return {given_mask, false};
  const Tensor attention_mask = without_padding(given_mask) ? Tensor() : given_mask;
  const SymInt query = embeds.sym_size(1);
  const bool start = !options.past.is_symbolic() && options.past.as_int() == 0;
  const SymInt total = options.past + query, keys_there = total - options.first;
  const bool windowed = options.window && (keys_there.is_symbolic() || keys_there.as_int() > *options.window);
  if (!attention_mask.defined() && !windowed && !options.explicit_mask && !options.blocks.defined()) {
    if (start) return {{}, true};
    if (!query.is_symbolic() && query.as_int() == 1) return {};
  }
  const Device device = embeds.device();
  const bool from_start = !options.first.is_symbolic() && options.first.as_int() == 0;
  const Tensor keys = (from_start ? arange(total, DType::int64, std::nullopt, device)
                                  : arange(options.first, total, DType::int64, std::nullopt, device))
                          .unsqueeze(0);
  const Tensor queries = arange(options.past, total, DType::int64, std::nullopt, device).unsqueeze(1);
  Tensor may = le(keys, queries).unsqueeze(0).unsqueeze(0);
  if (options.blocks.defined()) {
    const Tensor rows = options.blocks.unsqueeze(-1), columns = options.blocks.unsqueeze(1);
    may = bitwise_or(may, bitwise_and(eq(rows, columns), ge(rows, 0)).unsqueeze(1));
  }
  if (windowed) may = bitwise_and(may, gt(keys, queries - *options.window));
  if (attention_mask.defined())
    may = bitwise_and(may, padding_mask(from_start ? attention_mask : attention_mask.slice(1, options.first)));
  return {may, false};
}

AttentionMask bidirectional_mask(const Tensor& attention_mask) {
  if (!attention_mask.defined() || without_padding(attention_mask)) return {};
  if (attention_mask.dim() == 4) return {attention_mask, false};
  if (attention_mask.dim() == 3) {
    const Tensor kept = attention_mask.dtype() == DType::bool_ ? attention_mask : ne(attention_mask, 0);
    return {kept.unsqueeze(1), false};
  }
  return {padding_mask(attention_mask), false};
}

Tensor additive_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::bool_) return mask;
  const Tensor zero = full({}, 0.0, dtype, std::nullopt, mask.device());
  return where(mask, zero, lowest_finite(dtype));
}

Tensor split_heads(const Tensor& x, int64_t heads, int64_t head_size) {
  return x.view({x.sym_size(0), x.sym_size(1), heads, head_size}).transpose(1, 2);
}

Tensor join_heads(const Tensor& x) {
  const Tensor y = x.transpose(1, 2).contiguous();
  return y.view(
      {y.sym_size(0), y.sym_size(1), y.sym_size(2) * y.sym_size(3)});  // -1 could be anything when there are no tokens
}

Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const SymInt batch = x.sym_size(0), length = x.sym_size(2);
  const int64_t heads = x.size(1), size = x.size(3);
  return x.unsqueeze(2).expand({batch, heads, times, length, size}).reshape({batch, heads * times, length, size});
}

// The sinks take part of each row's weight and give nothing.
static Tensor softmax_beside_sinks(const Tensor& scores, const Tensor& sinks) {
  const Tensor beside = sinks.reshape({1, -1, 1, 1}).expand({scores.sym_size(0), -1, scores.sym_size(2), -1});
  const Tensor all = cat({scores, beside}, -1);
  return softmax(all - amax(all, {-1}, true), -1).slice(-1, 0, -1);
}

AttentionResult attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask,
                       const AttentionOptions& options) {
  const int64_t groups = query.size(1) / key.size(1);
  if (!options.eager) {
    Tensor added = mask.mask;
    bool is_causal = mask.is_causal;
    if (options.position_bias.defined()) {
      Tensor may = added;
      if (is_causal) may = tril(ones({query.sym_size(2), key.sym_size(2)}, DType::bool_, std::nullopt, query.device()));
      is_causal = false;
      if (!may.defined())
        added = options.position_bias;
      else if (may.dtype() == DType::bool_)
        added = where(may, options.position_bias, lowest_finite(query.dtype()));
      else
        added = options.position_bias + may;
    }
    const Tensor out = scaled_dot_product_attention(query, repeat_heads(key, groups), repeat_heads(value, groups), added,
                                                    options.dropout, is_causal, options.scale);
    return {join_heads(out), {}};
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
  const bool wide = options.scores_in_float32;
  Tensor scores = matmul(wide ? query.to(DType::float32) : query,
                         repeat_heads(wide ? key.to(DType::float32) : key, groups).transpose(2, 3));
  if (scale != 1) scores = scores * scale;
  if (options.soft_cap) scores = tanh(scores / *options.soft_cap) * *options.soft_cap;
  if (options.position_bias.defined()) scores = scores + options.position_bias;
  Tensor may = mask.mask;
  if (mask.is_causal) may = tril(ones({query.sym_size(2), key.sym_size(2)}, DType::bool_, std::nullopt, query.device()));
  if (may.defined()) scores = scores + additive_mask(may, scores.dtype());
  Tensor weights = options.sinks.defined()      ? softmax_beside_sinks(scores, options.sinks)
                   : options.softmax_in_float32 ? softmax(scores, -1, DType::float32)
                                                : softmax(scores, -1);
  weights = weights.to(value.dtype());
  weights = options.dropout_layer && prefers_modules() ? (*options.dropout_layer)(weights)
                                                       : functional::dropout(weights, options.dropout, options.dropout > 0);
  if (options.head_mask.defined()) weights = weights * options.head_mask;
  return {join_heads(matmul(weights, repeat_heads(value, groups))), weights};
}

Tensor head_mask_of_layer(const Tensor& head_mask, size_t layer) {
  if (!head_mask.defined()) return {};
  if (head_mask.dim() != 1 && head_mask.dim() != 2)
    throw UserError("head_mask has " + std::to_string(head_mask.dim()) +
                    " dimensions, expected 1 (heads) or 2 (layers, heads)");
  const Tensor factors = head_mask.dim() == 1 ? head_mask : head_mask.select(0, static_cast<int64_t>(layer));
  return factors.view({1, -1, 1, 1});
}

bool eager_attention(const Config& config, bool output_attentions, const Tensor& head_mask) {
  return config.attention_implementation == "eager" || output_attentions || head_mask.defined();
}

}  // namespace calque
