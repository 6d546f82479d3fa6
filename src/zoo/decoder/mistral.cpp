// Mistral: Llama without biases, which looks back at a window of tokens.
#include "zoo/blocks/decoder_model.h"

namespace calque::mistral {

namespace {

constexpr const char* names = "transformers.models.mistral.modeling_mistral.Mistral";

DecoderDesign design(const Config& c) {
  return {.names = names,
          .norm = {NormKind::rms, c.number("rms_norm_eps")},
          .attention = attention_design(c),
          .feed_forward = feed_forward_design(c),
          .layers = layer_designs(c)};
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_head_size(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "mistral",
      .config_class = "MistralConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 131072, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "pad_token_id": null, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": false,
        "sliding_window": 4096, "attention_dropout": 0.0})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads),
  });
}

}  // namespace calque::mistral
