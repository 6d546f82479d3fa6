// Gemma 3, its text part: Gemma 2 with norms of queries and keys and, in layers with a window, angles of their own.
#include <cmath>

#include "zoo/blocks/decoder_model.h"

namespace calque::gemma3_text {

namespace {

constexpr const char* names = "transformers.models.gemma3.modeling_gemma3.Gemma3";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .model = "TextModel",
                    .norm = {NormKind::rms_around_one, c.number("rms_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, false, "hidden_activation"),
                    .after_attention = "post_attention_layernorm",
                    .before_feed_forward = "pre_feedforward_layernorm",
                    .after_feed_forward = "post_feedforward_layernorm",
                    .layers = layer_designs(c),
                    .rotary = {{.among = "full_attention"}, {.among = "sliding_attention"}},
                    .scaled_embeddings = true,
                    .logits_cap = c.optional_number("final_logit_softcapping"),
                    .form = {.old = {{"^language_model.model.", "^model."}, {"^language_model.lm_head.", "^lm_head."}}}};
  out.attention.scale = 1 / std::sqrt(c.number("query_pre_attn_scalar"));
  out.attention.query_norm = QueryNorm::heads;
  out.attention.query_norm_kind = out.norm;
  for (LayerDesign& layer : out.layers) layer.rotary = layer.window ? 1 : 0;
  return out;
}

void complete(Config& config) {
  refuse_bidirectional(config);
  complete_key_heads(config);
  const int64_t pattern = config.optional_integer("sliding_window_pattern").value_or(6);
  config.set("_sliding_window_pattern", pattern);
  complete_layer_types(config, [&](int64_t layer) { return (layer + 1) % pattern != 0; });
  complete_rope_parameters_by_layer(
      config, {{"full_attention", "rope_theta", 1000000}, {"sliding_attention", "rope_local_base_freq", 10000}});
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

std::vector<ModelClass> classes() {
  return {decoder_base(heads, "TextModel"),
          decoder_class(DecoderHeadKind::causal_lm, {.family = &heads, .part = "ForCausalLM", .embedding = "embed_tokens"}),
          decoder_class(DecoderHeadKind::sequence_classification, {&heads, "TextForSequenceClassification"})};
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gemma3_text",
      .config_class = "Gemma3TextConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation":
        "gelu_pytorch_tanh", "max_position_embeddings": 131072, "initializer_range": 0.02, "rms_norm_eps":
        1e-06, "use_cache": true, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
        "tie_word_embeddings": true, "attention_bias": false, "attention_dropout": 0.0,
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "final_logit_softcapping": null,
        "attn_logit_softcapping": null, "use_bidirectional_attention": false})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = classes(),
  });
}

}  // namespace calque::gemma3_text
