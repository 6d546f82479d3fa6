// OLMo 2: norms behind attention and feed-forward instead of before them, and of all queries and keys.
#include "zoo/blocks/decoder_model.h"

namespace calque::olmo2 {

namespace {

constexpr const char* names = "transformers.models.olmo2.modeling_olmo2.Olmo2";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms_wide, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .before_attention = nullptr,
                    .after_attention = "post_attention_layernorm",
                    .before_feed_forward = nullptr,
                    .after_feed_forward = "post_feedforward_layernorm",
                    .layers = plain_layers(c),
                    .rotary = {{.wide = true}}};
  out.attention.query_norm = QueryNorm::whole;
  out.attention.query_norm_kind = out.norm;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "olmo2",
      .config_class = "Olmo2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu",
        "max_position_embeddings": 2048, "initializer_range": 0.02, "use_cache": true, "pad_token_id": 1,
        "bos_token_id": null, "eos_token_id": 50279, "tie_word_embeddings": false, "attention_bias": false,
        "attention_dropout": 0.0, "rms_norm_eps": 1e-05})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 2),
  });
}

}  // namespace calque::olmo2
