#include "vit_layers.h"

#include "calque/op/aten/dropout.h"

namespace calque {

ViTPatchEmbeddings::ViTPatchEmbeddings(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      channels(c.integer("num_channels")),
      image_size(picture_size(c, "image_size")),
      patch_size(picture_size(c, "patch_size")),
      num_patches(patch_grid(c).height * patch_grid(c).width),
      projection(child<Conv2d>("projection", channels, c.integer("hidden_size"), patch_size.both(),
                               ConvOptions{.stride = patch_size.both()})) {}

Tensor ViTPatchEmbeddings::forward(const Tensor& pixel_values) {
  return projection(checked_pixels(pixel_values, channels, projection->weight->dtype())).flatten(2).transpose(1, 2);
}

ViTSelfAttention::ViTSelfAttention(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      heads(c.integer("num_attention_heads")),
      size(c.integer("hidden_size") / heads),
      query(child<Linear>("query", c.integer("hidden_size"), heads * size, c.flag("qkv_bias"))),
      key(child<Linear>("key", c.integer("hidden_size"), heads * size, c.flag("qkv_bias"))),
      value(child<Linear>("value", c.integer("hidden_size"), heads * size, c.flag("qkv_bias"))),
      dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}

ViTSelfAttention::Result ViTSelfAttention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                   const Tensor& head_mask, bool eager) {
  const Tensor queries = split_heads(query(hidden_states), heads, size);
  const Tensor keys = split_heads(key(hidden_states), heads, size);
  const AttentionResult attended =
      attend(queries, keys, split_heads(value(hidden_states), heads, size), mask,
             {.dropout = training() ? dropout->p : 0, .eager = eager, .head_mask = head_mask, .softmax_in_float32 = true});
  return {attended.output, attended.weights};
}

ViTSelfOutput::ViTSelfOutput(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

ViTAttention::ViTAttention(const Config& c, const std::string& family)
    : FamilyModule(family),
      attention(child<ViTSelfAttention>("attention", c, family)),
      output(child<ViTSelfOutput>("output", c, family)) {}

ViTSelfAttention::Result ViTAttention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                               const Tensor& head_mask, bool eager) {
  auto [attended, weights] = attention(hidden_states, mask, head_mask, eager);
  return {output(attended), weights};
}

}  // namespace calque
