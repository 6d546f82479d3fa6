#include "projected_attention.h"

#include "calque/op/aten/dropout.h"

namespace calque {

ProjectedAttention::ProjectedAttention(const Options& o)
    : heads(o.heads),
      size(o.hidden_size / o.heads),
      dropout(o.dropout),
      softmax_in_float32(o.softmax_in_float32),
      k_proj(child<Linear>("k_proj", o.memory_size ? o.memory_size : o.hidden_size, o.hidden_size, o.bias)),
      v_proj(child<Linear>("v_proj", o.memory_size ? o.memory_size : o.hidden_size, o.hidden_size, o.bias)),
      q_proj(child<Linear>("q_proj", o.hidden_size, o.hidden_size, o.bias)),
      out_proj(child<Linear>("out_proj", o.hidden_size, o.hidden_size, o.bias)) {}

ProjectedAttention::Result ProjectedAttention::forward(const Tensor& x, const AttentionMask& mask,
                                                       const Tensor& key_value_states, const LayerCache& past,
                                                       const Tensor& head_mask, bool eager) {
  const bool cross = key_value_states.defined();
  const Tensor query = split_heads(q_proj(x), heads, size);
  LayerCache now = past;
  if (!cross) {
    const Tensor key = split_heads(k_proj(x), heads, size);
    now = past.updated(key, split_heads(v_proj(x), heads, size));
  } else if (!past.cross_key.defined()) {
    now.cross_key = split_heads(k_proj(key_value_states), heads, size);
    now.cross_value = split_heads(v_proj(key_value_states), heads, size);
  }
  const AttentionResult attended = attend(query, cross ? now.cross_key : now.key, cross ? now.cross_value : now.value, mask,
                                          {.dropout = training() ? dropout : 0,
                                           .eager = eager,
                                           .head_mask = head_mask,
                                           .softmax_in_float32 = softmax_in_float32});
  return {out_proj(attended.output), attended.weights, now};
}

}  // namespace calque
