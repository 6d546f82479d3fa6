// Granite: Llama with multipliers of embeddings, scores, what layers add, and logits.
#include "zoo/blocks/decoder_model.h"

namespace calque::granite {

namespace {

constexpr const char* names = "transformers.models.granite.modeling_granite.Granite";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, c.flag("mlp_bias")),
                    .residual_scale = c.number("residual_multiplier"),
                    .layers = plain_layers(c),
                    .embeddings_scale = c.number("embedding_multiplier"),
                    .logits_divisor = c.number("logits_scaling")};
  out.attention.scale = c.number("attention_multiplier");
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
      .model_type = "granite",
      .config_class = "GraniteConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu",
        "max_position_embeddings": 2048, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "pad_token_id": null, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": false,
        "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false, "embedding_multiplier": 1.0,
        "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 1),
  });
}

}  // namespace calque::granite
