// Qwen2: Llama with biases of queries, keys and values, and windows in later layers where asked for.
#include "zoo/blocks/decoder_model.h"

namespace calque::qwen2 {

namespace {

constexpr const char* names = "transformers.models.qwen2.modeling_qwen2.Qwen2";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .layers = layer_designs(c)};
  out.attention.bias = true;
  out.attention.output_bias = false;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_late_windows(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "qwen2",
      .config_class = "Qwen2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu",
        "max_position_embeddings": 32768, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": null,
        "max_window_layers": 28, "attention_dropout": 0.0, "pad_token_id": null, "bos_token_id": null,
        "eos_token_id": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 4, "transformer"),
  });
}

}  // namespace calque::qwen2
