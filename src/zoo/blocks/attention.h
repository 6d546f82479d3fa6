// Attention over heads, and the masks that say who may look at whom. A mask is boolean (true: may look) or is added to the
// scores; eager and fused attention give the same numbers for rows that may look at something.
#pragma once

#include <optional>
#include <string>

#include "calque/hub/config.h"
#include "calque/op/value.h"

namespace calque {

struct Dropout;

struct AttentionMask {
  Tensor mask;             // [batch or 1, heads or 1, query or 1, key]; undefined: everybody may
  bool is_causal = false;  // besides: position i looks at 0..i; only where there is no mask

  Value to_value() const;
  static AttentionMask from_value(const Value& value);
};

// Who may look at whom in a decoder: at the past and oneself, not at padding (`attention_mask` [batch, past + query], 1 is
// kept), not farther back than `window`. A 4-D attention_mask is taken as it is.
struct CausalMaskOptions {
  SymInt past = 0;                               // tokens in the cache
  SymInt first = 0;                              // the first of them that is there: a window keeps the last ones
  std::optional<int64_t> window = std::nullopt;  // sliding window
  Tensor blocks = {};          // [batch, query], no past: tokens of one number, 0 or more, look at each other too
  bool explicit_mask = false;  // a tensor even where is_causal would say it
};
AttentionMask causal_mask(const Tensor& embeds, const Tensor& attention_mask, const CausalMaskOptions& options = {});
// In an encoder, or across to one: not at padding.
AttentionMask bidirectional_mask(const Tensor& attention_mask);
// As numbers to be added: 0, and the lowest of the dtype where one may not look. Undefined stays undefined.
Tensor additive_mask(const Tensor& mask, DType dtype);

struct AttentionOptions {
  std::optional<double> scale = std::nullopt;  // none: 1 / sqrt(head size)
  double dropout = 0;                          // 0 when not training
  Dropout* dropout_layer = nullptr;            // where the family has one; a tracer that prefers modules sees it called
  bool eager = false;
  Tensor head_mask = {};      // factors of the weights; eager only
  Tensor position_bias = {};  // added to the scores before the mask
  bool softmax_in_float32 = false;
  std::optional<double> soft_cap = std::nullopt;  // no score is larger; eager only
  Tensor sinks = {};                              // [heads]: a score beside the others, of no value; eager only
  bool scores_in_float32 = false;                 // queries and keys too; eager only: fused attention sums in float32 anyway
};
struct AttentionResult {
  Tensor output;   // [batch, query, heads * head size]
  Tensor weights;  // [batch, heads, query, key]; undefined when fused
};
// Query [batch, heads, query, size]; key and value may have fewer heads, a divisor of the query's.
AttentionResult attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask,
                       const AttentionOptions& options = {});

// [batch, length, heads * size] to [batch, heads, length, size] and back.
Tensor split_heads(const Tensor& x, int64_t heads, int64_t head_size);
Tensor join_heads(const Tensor& x);
Tensor repeat_heads(const Tensor& x, int64_t times);  // each head so many times, side by side

// A head mask is [heads] or [layers, heads]; of one layer it is factors that fit the weights. Undefined stays undefined.
Tensor head_mask_of_layer(const Tensor& head_mask, size_t layer);

// Whether a call computes attention eagerly: asked by the config, or weights are wanted.
bool eager_attention(const Config& config, bool output_attentions, const Tensor& head_mask = {});

}  // namespace calque
