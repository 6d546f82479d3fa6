#include "gpt_attention.h"

#include "calque/op/operators.h"

namespace calque {

GptAttention::GptAttention(const Config& c, const Options& options)
    : heads(c.integer("num_attention_heads")),
      size(c.integer("hidden_size") / heads),
      scale(options.scale),
      attn_dropout(child<Dropout>("attn_dropout", c.number(options.attention_dropout))),
      resid_dropout(child<Dropout>("resid_dropout", c.number(options.residual_dropout))),
      k_proj(child<Linear>("k_proj", c.integer("hidden_size"), c.integer("hidden_size"), false)),
      v_proj(child<Linear>("v_proj", c.integer("hidden_size"), c.integer("hidden_size"), false)),
      q_proj(child<Linear>("q_proj", c.integer("hidden_size"), c.integer("hidden_size"), false)),
      out_proj(child<Linear>("out_proj", c.integer("hidden_size"), c.integer("hidden_size"), options.output_bias)) {}

GptAttention::Result GptAttention::attended(const Tensor& x, const Tensor& query, const Tensor& key,
                                            const AttentionMask& mask, const LayerCache& past, const Tensor& head_mask,
                                            bool eager) {
  const LayerCache now = past.updated(key, split_heads(v_proj(x), heads, size));
  const AttentionResult result = attend(query, now.key, now.value, mask,
                                        {.scale = scale,
                                         .dropout = training() ? attn_dropout->p : 0,
                                         .dropout_layer = &*attn_dropout,
                                         .eager = eager,
                                         .head_mask = head_mask,
                                         .scores_in_float32 = true});
  return {resid_dropout(out_proj(result.output)), result.weights, now};
}

Tensor with_token_types(const Tensor& x, const Tensor& token_type_ids, Child<Embedding>& words) {
  if (!token_type_ids.defined()) return x;
  return x + words(token_type_ids.view({-1, token_type_ids.sym_size(-1)}));
}

}  // namespace calque
