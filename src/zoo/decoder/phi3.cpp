// Phi-3: Llama with queries, keys and values in one product, gate and up in another, and long texts by longrope.
#include "zoo/blocks/decoder_model.h"

namespace calque::phi3 {

namespace {

constexpr const char* names = "transformers.models.phi3.modeling_phi3.Phi3";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .attention_dropout = "resid_attn_dropout",
                    .feed_forward_dropout = "resid_mlp_dropout",
                    .residual_dropout = c.number("resid_pdrop"),
                    .layers = layer_designs(c),
                    .rotary = {{.partial = true}}};
  out.attention.projection = Projection::joined;
  out.feed_forward.kind = FeedForwardDesign::Kind::gated_joined;
  out.feed_forward.up = "gate_up_proj";
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  // What later came to be longrope.
  for (const char* name : {"rope_scaling", "rope_parameters"})
    if (config.has(name)) {
      std::vector<std::pair<Value, Value>> items = config.find(name)->to_dict().items;
      for (auto& [key, value] : items) {
        const bool names_type = key.to_string() == "type" || key.to_string() == "rope_type";
        if (names_type && value.kind() == Value::Kind::string && (value.to_string() == "su" || value.to_string() == "yarn"))
          value = "longrope";
      }
      config.set(name, dict(std::move(items)));
    }
  complete_rotary_part(config, 1.0);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "phi3",
      .config_class = "Phi3Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "attention_dropout": 0.0, "hidden_act": "silu", "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096, "initializer_range": 0.02, "rms_norm_eps": 1e-05,
        "use_cache": true, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 32000,
        "pad_token_id": 32000, "sliding_window": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::phi3
