// Mixtral: Mistral with a mixture of experts in every layer.
#include "zoo/blocks/decoder_model.h"

namespace calque::mixtral {

namespace {

constexpr const char* names = "transformers.models.mixtral.modeling_mixtral.Mixtral";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .experts = {.count = c.integer("num_local_experts"),
                                .chosen = c.integer("num_experts_per_tok"),
                                .size = c.integer("intermediate_size"),
                                .normalised = true,
                                .wide_weights = true},
                    .layers = layer_designs(c),
                    .form = {.renamed = {{".block_sparse_moe.", ".mlp."}},
                             .joined = {{"mlp.experts.gate_up_proj", {"mlp.experts.*.w1.weight", "mlp.experts.*.w3.weight"}},
                                        {"mlp.experts.down_proj", {"mlp.experts.*.w2.weight"}}}}};
  for (LayerDesign& layer : out.layers) layer.experts = true;
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rope_parameters(config, 1000000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "mixtral",
      .config_class = "MixtralConfig",
      .attribute_map = {{"num_experts", "num_local_experts"}},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
        "max_position_embeddings": 131072, "initializer_range": 0.02, "rms_norm_eps": 1e-05, "use_cache":
        true, "pad_token_id": null, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": false,
        "sliding_window": null, "attention_dropout": 0.0, "num_experts_per_tok": 2, "num_local_experts": 8,
        "output_router_logits": false, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads),
  });
}

}  // namespace calque::mixtral
