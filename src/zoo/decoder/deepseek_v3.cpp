// DeepSeek-V3: latent attention, experts chosen in groups by sigmoid scores, and experts that every token passes.
#include <cmath>

#include "zoo/blocks/decoder_model.h"

namespace calque::deepseek_v3 {

namespace {

constexpr const char* names = "transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3";

// Long texts by yarn make scores larger.
double scale_of(const Config& c, int64_t head_size) {
  const double plain = 1 / std::sqrt(static_cast<double>(head_size));
  const Config rope = c.nested("rope_parameters");
  const double all = rope.optional_number("mscale_all_dim").value_or(0);
  if (rope.text("rope_type") == "default" || all == 0) return plain;
  const double factor = rope.number("factor");
  const double more = factor <= 1 ? 1 : 0.1 * all * std::log(factor) + 1;
  return plain * more * more;
}

DecoderDesign design(const Config& c) {
  const int64_t plain = c.integer("qk_nope_head_dim"), turned = c.integer("qk_rope_head_dim");
  const bool apart = c.flag("rope_interleave");
  DecoderDesign out{.names = names,
                    .router_class = "TopkRouter",
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .latent = LatentDesign{.query_rank = c.optional_integer("q_lora_rank"),
                                           .value_rank = c.integer("kv_lora_rank"),
                                           .plain_size = plain,
                                           .turned_size = turned,
                                           .value_size = c.integer("v_head_dim")},
                    .feed_forward = feed_forward_design(c),
                    .experts = {.block = "MoE",
                                .scores = ExpertsDesign::Scores::sigmoid,
                                .count = c.integer("n_routed_experts"),
                                .chosen = c.integer("num_experts_per_tok"),
                                .size = c.integer("moe_intermediate_size"),
                                .normalised = c.flag("norm_topk_prob"),
                                .scale = c.number("routed_scaling_factor"),
                                .groups = c.integer("n_group"),
                                .chosen_groups = c.integer("topk_group"),
                                .shared = "shared_experts",
                                .shared_size = c.integer("moe_intermediate_size") * c.integer("n_shared_experts")},
                    .layers = plain_layers(c),
                    .form = experts_one_by_one(),
                    .unexpected = {"model\\.layers\\.61.*"}};
  out.attention.head_size = plain + turned;
  out.attention.turning = apart ? Turning::neighbours_apart : Turning::halves;
  out.attention.query_norm_kind = {NormKind::rms, 1e-6};
  out.attention.scale = scale_of(c, plain + turned);
  for (size_t i = 0; i < out.layers.size(); ++i)
    out.layers[i].experts = static_cast<int64_t>(i) >= c.integer("first_k_dense_replace");
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  config.set("qk_head_dim", config.integer("qk_nope_head_dim") + config.integer("qk_rope_head_dim"));
  config.set("head_dim", config.integer("qk_rope_head_dim"));
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "deepseek_v3",
      .config_class = "DeepseekV3Config",
      .attribute_map = {{"num_local_experts", "n_routed_experts"}, {"num_mtp_layers", "num_nextn_predict_layers"}},
      .defaults = R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size":
        2048, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": null,
        "n_shared_experts": 1, "n_routed_experts": 256, "output_router_logits": false,
        "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8,
        "first_k_dense_replace": 3, "norm_topk_prob": true, "hidden_act": "silu", "max_position_embeddings":
        4096, "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache": true, "pad_token_id": null,
        "bos_token_id": 0, "eos_token_id": 1, "pretraining_tp": 1, "tie_word_embeddings": false,
        "rope_interleave": true, "attention_bias": false, "attention_dropout": 0.0,
        "num_nextn_predict_layers": 1})",
      .schema = rotary_schema(),
      .complete = complete,
      .note = "usually shipped quantised (FP8): such checkpoints do not open yet",
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::deepseek_v3
