// gpt-oss: windows in every other layer, sinks beside the scores, experts with biases and a limited gate.
#include "zoo/blocks/decoder_model.h"

namespace calque::gpt_oss {

namespace {

constexpr const char* names = "transformers.models.gpt_oss.modeling_gpt_oss.GptOss";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms_wide, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .experts = {.router = "router",
                                .block = "MLP",
                                .scores = ExpertsDesign::Scores::softmax_of_best,
                                .count = c.integer("num_local_experts"),
                                .chosen = c.integer("num_experts_per_tok"),
                                .size = c.integer("intermediate_size"),
                                .transposed = true,
                                .gate_alpha = c.number("swiglu_alpha"),
                                .gate_limit = c.number("swiglu_limit")},
                    .layers = layer_designs(c),
                    .fused_attention = false};
  out.attention.sinks = true;
  for (LayerDesign& layer : out.layers) layer.experts = true;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_head_size(config);
  complete_layer_types(config, [](int64_t layer) { return layer % 2 == 0; });
  if (!config.has("rope_parameters") && !config.has("rope_scaling"))
    config.set("rope_parameters", dict({{"rope_type", "yarn"},
                                        {"factor", 32.0},
                                        {"beta_fast", 32.0},
                                        {"beta_slow", 1.0},
                                        {"truncate", false},
                                        {"original_max_position_embeddings", 4096}}));
  complete_rope_parameters(config, 150000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gpt_oss",
      .config_class = "GptOssConfig",
      .attribute_map = {{"num_experts", "num_local_experts"}},
      .defaults = R"({"num_hidden_layers": 36, "num_local_experts": 128, "vocab_size": 201088, "hidden_size": 2880,
        "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
        "sliding_window": 128, "tie_word_embeddings": false, "hidden_act": "silu", "initializer_range":
        0.02, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "attention_dropout": 0.0,
        "num_experts_per_tok": 4, "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "router_aux_loss_coef": 0.001,
        "output_router_logits": false, "use_cache": true, "pad_token_id": null, "bos_token_id": null,
        "eos_token_id": null, "attention_bias": true})",
      .schema = rotary_schema(),
      .complete = complete,
      .note = "usually shipped quantised (MXFP4): such checkpoints do not open yet",
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::gpt_oss
