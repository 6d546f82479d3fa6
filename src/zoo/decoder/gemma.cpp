// Gemma: Llama with scaled embeddings, and norms whose weights are around one.
#include "zoo/blocks/decoder_model.h"

namespace calque::gemma {

namespace {

constexpr const char* names = "transformers.models.gemma.modeling_gemma.Gemma";

DecoderDesign design(const Config& c) {
  return {.names = names,
          .norm = {NormKind::rms_around_one, c.number("rms_norm_eps")},
          .attention = attention_design(c),
          .feed_forward = feed_forward_design(c),
          .layers = plain_layers(c),
          .scaled_embeddings = true};
}

void complete(Config& config) {
  // Early files have the exact form's name for the approximation that the model was trained with.
  if (config.text("hidden_act") == "gelu") config.set("hidden_act", "gelu_pytorch_tanh");
  refuse_bidirectional(config);
  complete_key_heads(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gemma",
      .config_class = "GemmaConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "hidden_act":
        "gelu_pytorch_tanh", "max_position_embeddings": 8192, "initializer_range": 0.02, "rms_norm_eps":
        1e-06, "use_cache": true, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
        "tie_word_embeddings": true, "attention_bias": false, "attention_dropout": 0.0,
        "use_bidirectional_attention": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::gemma
