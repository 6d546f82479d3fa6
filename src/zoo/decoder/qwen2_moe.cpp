// Qwen2-MoE: Qwen2 with mixtures of experts, beside which one expert sees every token.
#include "zoo/blocks/decoder_model.h"

namespace calque::qwen2_moe {

namespace {

constexpr const char* names = "transformers.models.qwen2_moe.modeling_qwen2_moe.Qwen2Moe";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .experts = {.count = c.integer("num_experts"),
                                .chosen = c.integer("num_experts_per_tok"),
                                .size = c.integer("moe_intermediate_size"),
                                .normalised = c.flag("norm_topk_prob"),
                                .shared = "shared_expert",
                                .shared_size = c.integer("shared_expert_intermediate_size"),
                                .shared_gate = true},
                    .layers = layer_designs(c),
                    .form = experts_one_by_one()};
  out.attention.bias = c.flag("qkv_bias");
  out.attention.output_bias = false;
  put_experts_by_step(c, out.layers, out.experts.count);
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  if (!config.has("mlp_only_layers")) config.set("mlp_only_layers", list({}));
  const bool windows = config.flag("use_sliding_window");
  if (!windows) config.set("sliding_window", 0);
  const int64_t last = config.integer("max_window_layers");
  complete_layer_types(config, [&](int64_t layer) { return windows && layer % 2 == 0 && layer < last; });
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "qwen2_moe",
      .config_class = "Qwen2MoeConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "hidden_act": "silu",
        "max_position_embeddings": 32768, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": 0,
        "max_window_layers": 28, "attention_dropout": 0.0, "decoder_sparse_step": 1,
        "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
        "num_experts": 60, "norm_topk_prob": false, "output_router_logits": false, "router_aux_loss_coef":
        0.001, "mlp_only_layers": null, "qkv_bias": true, "pad_token_id": null, "bos_token_id": null,
        "eos_token_id": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads),
  });
}

}  // namespace calque::qwen2_moe
