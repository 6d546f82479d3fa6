// Llama: rotary positions, grouped heads, RMS norms, gated feed-forward.
#include "zoo/blocks/decoder_model.h"

namespace calque::llama {

namespace {

DecoderDesign design(const Config& c) {
  return {.names = "transformers.models.llama.modeling_llama.Llama",
          .norm = {NormKind::rms, c.number("rms_norm_eps")},
          .attention = attention_design(c),
          .feed_forward = feed_forward_design(c, c.flag("mlp_bias")),
          .layers = plain_layers(c)};
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_head_size(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{"transformers.models.llama.modeling_llama.Llama", "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "llama",
      .config_class = "LlamaConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "max_position_embeddings": 2048,
        "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache": true, "pad_token_id": null, "bos_token_id": 1,
        "eos_token_id": 2, "pretraining_tp": 1, "tie_word_embeddings": false, "attention_bias": false,
        "attention_dropout": 0.0, "mlp_bias": false, "head_dim": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 4, "transformer"),
  });
}

}  // namespace calque::llama
