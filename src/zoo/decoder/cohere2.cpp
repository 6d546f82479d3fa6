// Cohere 2: Cohere with windows in most layers; the others know no positions.
#include "zoo/blocks/cohere_design.h"
#include "zoo/blocks/decoder_model.h"

namespace calque::cohere2 {

namespace {

constexpr const char* names = "transformers.models.cohere2.modeling_cohere2.Cohere2";

DecoderDesign design(const Config& c) {
  DecoderDesign out = cohere_design(names, c, layer_designs(c));
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
      .defaults = cohere_defaults(R"(, "sliding_window": 4096)"),
      .schema = rotary_schema({{"logit_scale", KeyKind::number}}),
      .complete = complete,
      .classes = decoder_classes(heads, 1),
  });
}

}  // namespace calque::cohere2
