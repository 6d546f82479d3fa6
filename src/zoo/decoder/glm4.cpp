// GLM-4: norms before and behind attention and feed-forward, neighbouring numbers turned, gate and up in one product.
#include "zoo/blocks/decoder_model.h"

namespace calque::glm4 {

namespace {

constexpr const char* names = "transformers.models.glm4.modeling_glm4.Glm4";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .after_attention = "post_self_attn_layernorm",
                    .after_feed_forward = "post_mlp_layernorm",
                    .layers = plain_layers(c),
                    .rotary = {{.interleaved = true, .partial = true}}};
  out.attention.output_bias = false;
  out.attention.turning = Turning::neighbours;
  out.feed_forward.kind = FeedForwardDesign::Kind::gated_joined;
  out.feed_forward.up = "gate_up_proj";
  return out;
}

void complete(Config& config) {
  if (!config.has("eos_token_id")) config.set("eos_token_id", list({151329, 151336, 151338}));
  complete_key_heads(config);
  complete_rotary_part(config, 0.5);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "glm4",
      .config_class = "Glm4Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu",
        "attention_dropout": 0.0, "max_position_embeddings": 131072, "initializer_range": 0.02,
        "rms_norm_eps": 1.5625e-07, "use_cache": true, "tie_word_embeddings": false, "pad_token_id": 151329,
        "eos_token_id": null, "bos_token_id": null, "attention_bias": true})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::glm4
