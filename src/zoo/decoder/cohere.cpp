// Cohere: Llama's parts with attention and feed-forward side by side, norms without bias, rotary positions of neighbouring
// numbers, norms of queries and keys where asked for, logits scaled.
#include "zoo/blocks/decoder_model.h"

namespace calque::cohere {

namespace {

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = "transformers.models.cohere.modeling_cohere.Cohere",
                    .norm_class = "LayerNorm",
                    .norm = {NormKind::centred, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .parallel = true,
                    .before_feed_forward = nullptr,
                    .layers = plain_layers(c),
                    .rotary = {{.interleaved = true}},
                    .logits_scale = c.number("logit_scale")};
  out.attention.turning = Turning::neighbours;
  out.attention.wide_turning = true;
  if (c.flag("use_qk_norm")) out.attention.query_norm = QueryNorm::each_head;
  out.attention.query_norm_kind = out.norm;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rope_parameters(config, 500000);
}

constexpr HeadFamily heads{"transformers.models.cohere.modeling_cohere.Cohere", "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "cohere",
      .config_class = "CohereConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act": "silu",
        "max_position_embeddings": 8192, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "use_cache": true,
        "pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 255001, "tie_word_embeddings": true, "attention_bias": false,
        "attention_dropout": 0.0, "use_qk_norm": false})",
      .schema = rotary_schema({{"logit_scale", KeyKind::number}}),
      .complete = complete,
      .classes = decoder_classes(heads, 1),
  });
}

}  // namespace calque::cohere
