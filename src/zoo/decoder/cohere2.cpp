// Cohere 2: Cohere with windows in most layers; the others know no positions.
#include "zoo/blocks/decoder_model.h"

namespace calque::cohere2 {

namespace {

constexpr const char* names = "transformers.models.cohere2.modeling_cohere2.Cohere2";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm_class = "LayerNorm",
                    .norm = {NormKind::centred, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .parallel = true,
                    .before_feed_forward = nullptr,
                    .layers = layer_designs(c),
                    .rotary = {{.interleaved = true}},
                    .logits_scale = c.number("logit_scale")};
  out.attention.turning = Turning::neighbours;
  out.attention.wide_turning = true;
  for (LayerDesign& layer : out.layers)
    if (!layer.window) layer.rotary = -1;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  config.set("head_dim", config.integer("hidden_size") / config.integer("num_attention_heads"));
  if (!config.has("layer_types")) {
    const int64_t pattern = config.optional_integer("sliding_window_pattern").value_or(4);
    config.erase("sliding_window_pattern");
    complete_layer_types(config, [&](int64_t layer) { return (layer + 1) % pattern != 0; });
  }
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "cohere2",
      .config_class = "Cohere2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act":
        "silu", "max_position_embeddings": 8192, "initializer_range": 0.02, "layer_norm_eps": 1e-05,
        "use_cache": true, "pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 255001,
        "tie_word_embeddings": true, "attention_bias": false, "attention_dropout": 0.0, "sliding_window":
        4096})",
      .schema = rotary_schema({{"logit_scale", KeyKind::number}}),
      .complete = complete,
      .classes = decoder_classes(heads, 1),
  });
}

}  // namespace calque::cohere2
