// Qwen3-MoE: Qwen3 with mixtures of experts.
#include "zoo/blocks/decoder_model.h"

namespace calque::qwen3_moe {

namespace {

constexpr const char* names = "transformers.models.qwen3_moe.modeling_qwen3_moe.Qwen3Moe";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .experts = {.count = c.integer("num_local_experts"),
                                .chosen = c.integer("num_experts_per_tok"),
                                .size = c.integer("moe_intermediate_size"),
                                .normalised = c.flag("norm_topk_prob")},
                    .layers = layer_designs(c),
                    .form = experts_one_by_one()};
  out.attention.query_norm = QueryNorm::heads;
  out.attention.query_norm_kind = out.norm;
  put_experts_by_step(c, out.layers, out.experts.count);
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  if (!config.has("mlp_only_layers")) config.set("mlp_only_layers", list({}));
  if (!config.flag("use_sliding_window")) config.set("sliding_window", Value());
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "qwen3_moe",
      .config_class = "Qwen3MoeConfig",
      .attribute_map = {{"num_experts", "num_local_experts"}},
      .defaults = R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu",
        "max_position_embeddings": 32768, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache":
        true, "tie_word_embeddings": false, "attention_bias": false, "use_sliding_window": false,
        "sliding_window": null, "attention_dropout": 0.0, "decoder_sparse_step": 1, "moe_intermediate_size":
        768, "num_experts_per_tok": 8, "num_local_experts": 128, "norm_topk_prob": false,
        "output_router_logits": false, "router_aux_loss_coef": 0.001, "mlp_only_layers": null,
        "pad_token_id": null, "bos_token_id": null, "eos_token_id": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 4, "transformer"),
  });
}

}  // namespace calque::qwen3_moe
