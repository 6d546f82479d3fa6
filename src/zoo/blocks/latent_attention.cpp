#include "latent_attention.h"

#include "calque/op/aten/cat.h"
#include "zoo/blocks/child_if.h"

namespace calque {

LatentAttention::LatentAttention(const Config& c, const DecoderDesign& whole)
    : NamedModule(whole.names + "Attention"),
      design(whole.attention),
      sizes(*whole.latent),
      q_proj(child_if<Linear>(!sizes.query_rank, *this, "q_proj", c.integer("hidden_size"), design.heads * design.head_size,
                              false)),
      q_a_proj(
          child_if<Linear>(!q_proj, *this, "q_a_proj", c.integer("hidden_size"), sizes.query_rank.value_or(1), design.bias)),
      q_a_layernorm(*this, q_proj ? nullptr : "q_a_layernorm", whole, design.query_norm_kind,
                    {sizes.query_rank.value_or(1)}),
      q_b_proj(child_if<Linear>(!q_proj, *this, "q_b_proj", sizes.query_rank.value_or(1), design.heads * design.head_size,
                                false)),
      kv_a_proj_with_mqa(
          child<Linear>("kv_a_proj_with_mqa", c.integer("hidden_size"), sizes.value_rank + sizes.turned_size, design.bias)),
      kv_a_layernorm(*this, "kv_a_layernorm", whole, design.query_norm_kind, {sizes.value_rank}),
      kv_b_proj(child<Linear>("kv_b_proj", sizes.value_rank, design.heads * (sizes.plain_size + sizes.value_size), false)),
      o_proj(child<Linear>(design.output, design.heads * sizes.value_size, c.integer("hidden_size"), design.output_bias)) {}

DecoderAttention::Result LatentAttention::forward(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                                                  const AttentionMask& mask, const LayerCache& past, bool eager) {
  const int64_t heads = design.heads, plain = sizes.plain_size;
  const Tensor flat = q_proj ? (*q_proj)(x) : (*q_b_proj)(q_a_layernorm((*q_a_proj)(x)));
  const Tensor queries = split_heads(flat, heads, design.head_size);
  const Tensor query = cat({queries.slice(-1, 0, plain), turn(queries.slice(-1, plain), cosine, sine, design.turning)}, -1);

  const Tensor compressed = kv_a_proj_with_mqa(x);
  const Tensor latent = kv_a_layernorm(compressed.slice(-1, 0, sizes.value_rank)).unsqueeze(1);
  const Tensor turned = turn(compressed.slice(-1, sizes.value_rank).unsqueeze(1), cosine, sine, design.turning);
  const LayerCache now = past.updated(latent, turned);

  const Tensor opened = split_heads(kv_b_proj(now.key.squeeze(1)), heads, plain + sizes.value_size);
  const Tensor key = cat({opened.slice(-1, 0, plain), now.value.expand({-1, heads, -1, -1})}, -1);
  const AttentionResult attended = attend(
      query, key, opened.slice(-1, plain), mask,
      {.scale = design.scale, .dropout = training() ? design.dropout : 0, .eager = eager, .softmax_in_float32 = true});
  return {o_proj(attended.output), attended.weights, now};
}

}  // namespace calque
