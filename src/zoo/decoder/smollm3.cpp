// SmolLM3: Llama, some of whose layers know no positions.
#include "calque/base/error.h"
#include "zoo/blocks/decoder_model.h"

namespace calque::smollm3 {

namespace {

constexpr const char* names = "transformers.models.smollm3.modeling_smollm3.SmolLM3";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, c.flag("mlp_bias")),
                    .layers = layer_designs(c)};
  const std::vector<int64_t> turns = c.integers("no_rope_layers");  // 1: the layer has positions
  for (size_t i = 0; i < out.layers.size(); ++i)
    if (turns.at(i) == 0) out.layers[i].rotary = -1;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  const int64_t count = config.integer("num_hidden_layers");
  if (!config.has("no_rope_layers")) {
    Values turns;
    const int64_t interval = config.integer("no_rope_layer_interval");
    for (int64_t i = 0; i < count; ++i) turns.emplace_back(int64_t{(i + 1) % interval != 0});
    config.set("no_rope_layers", list(std::move(turns)));
  }
  const std::vector<int64_t> turns = config.integers("no_rope_layers");
  if (std::ssize(turns) < count)
    throw UserError(ErrorKind::bad_file, "\"no_rope_layers\" has " + std::to_string(turns.size()) + " entries, expected " +
                                             std::to_string(count) + ", one a layer");
  const bool windows = config.flag("use_sliding_window") && config.has("sliding_window");
  complete_layer_types(config, [&](int64_t layer) { return windows && turns[static_cast<size_t>(layer)] == 0; });
  complete_rope_parameters(config, 2000000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "smollm3",
      .config_class = "SmolLM3Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
        "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu",
        "max_position_embeddings": 32768, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "pad_token_id": 128004, "bos_token_id": 128000, "eos_token_id": 128001, "use_sliding_window":
        false, "sliding_window": null, "no_rope_layers": null, "no_rope_layer_interval": 4,
        "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false, "tie_word_embeddings": true})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 4, "transformer"),
  });
}

}  // namespace calque::smollm3
