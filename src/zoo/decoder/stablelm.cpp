// StableLM: LayerNorms, a part of each head turned, attention and feed-forward side by side where asked for.
#include "zoo/blocks/decoder_model.h"

namespace calque::stablelm {

namespace {

constexpr const char* names = "transformers.models.stablelm.modeling_stablelm.StableLm";

DecoderDesign design(const Config& c) {
  const bool parallel = c.flag("use_parallel_residual");
  DecoderDesign out{.names = names,
                    .norm = {NormKind::layer, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .parallel = parallel,
                    .before_feed_forward = parallel ? nullptr : "post_attention_layernorm",
                    .feed_forward_dropout = "dropout",
                    .residual_dropout = c.number("hidden_dropout"),
                    .layers = plain_layers(c),
                    .rotary = {{.partial = true}}};
  out.attention.bias = c.flag("use_qkv_bias");
  out.attention.output_bias = false;
  if (c.flag("qk_layernorm")) out.attention.query_norm = QueryNorm::list;
  out.attention.query_norm_kind = out.norm;
  out.attention.query_norm_name = "q_layernorm";
  out.attention.key_norm_name = "k_layernorm";
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rotary_part(config, 0.25);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "stablelm",
      .config_class = "StableLmConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50304, "intermediate_size": 6912, "hidden_size": 2560, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu",
        "max_position_embeddings": 4096, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "use_cache":
        true, "tie_word_embeddings": false, "use_qkv_bias": false, "qk_layernorm": false,
        "use_parallel_residual": false, "hidden_dropout": 0.0, "attention_dropout": 0.0, "bos_token_id": 0,
        "eos_token_id": 0, "pad_token_id": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::stablelm
