// Gemma 2: norms before and behind attention and feed-forward, every other layer with a window, scores and logits capped.
#include <cmath>

#include "zoo/blocks/decoder_model.h"

namespace calque::gemma2 {

namespace {

constexpr const char* names = "transformers.models.gemma2.modeling_gemma2.Gemma2";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::rms_around_one, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, false, "hidden_activation"),
                    .after_attention = "post_attention_layernorm",
                    .before_feed_forward = "pre_feedforward_layernorm",
                    .after_feed_forward = "post_feedforward_layernorm",
                    .layers = layer_designs(c),
                    .scaled_embeddings = true,
                    .logits_cap = c.optional_number("final_logit_softcapping"),
                    .fused_attention = false};
  out.attention.scale = 1 / std::sqrt(c.number("query_pre_attn_scalar"));
  out.attention.soft_cap = c.optional_number("attn_logit_softcapping");
  return out;
}

void complete(Config& config) {
  refuse_bidirectional(config);
  complete_key_heads(config);
  complete_layer_types(config, [](int64_t layer) { return layer % 2 == 0; });
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gemma2",
      .config_class = "Gemma2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation":
        "gelu_pytorch_tanh", "max_position_embeddings": 8192, "initializer_range": 0.02, "rms_norm_eps":
        1e-06, "use_cache": true, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
        "tie_word_embeddings": true, "attention_bias": false, "attention_dropout": 0.0,
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "final_logit_softcapping": 30.0,
        "attn_logit_softcapping": 50.0, "use_bidirectional_attention": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::gemma2
