// Phi: attention and feed-forward side by side behind one LayerNorm, a part of each head turned.
#include "zoo/blocks/decoder_model.h"

namespace calque::phi {

namespace {

constexpr const char* names = "transformers.models.phi.modeling_phi.Phi";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::layer, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, true),
                    .parallel = true,
                    .before_feed_forward = nullptr,
                    .attention_dropout = "resid_dropout",
                    .feed_forward_dropout = "resid_dropout",
                    .residual_dropout = c.number("resid_pdrop"),
                    .layers = plain_layers(c),
                    .rotary = {{.partial = true}},
                    .embeddings_dropout = "embed_dropout",
                    .embeddings_dropout_rate = c.number("embd_pdrop"),
                    .last_norm = "final_layernorm"};
  out.attention.bias = out.attention.output_bias = true;
  out.attention.output = "dense";
  if (c.flag("qk_layernorm")) out.attention.query_norm = QueryNorm::heads;
  out.attention.query_norm_kind = out.norm;
  out.attention.query_norm_name = "q_layernorm";
  out.attention.key_norm_name = "k_layernorm";
  out.feed_forward.kind = FeedForwardDesign::Kind::plain;
  out.feed_forward.up = "fc1";
  out.feed_forward.down = "fc2";
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rotary_part(config, 0.5);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

std::vector<ModelClass> classes() {
  std::vector<ModelClass> out = decoder_classes(heads, 3);
  out[1] = decoder_class(DecoderHeadKind::causal_lm,
                         {.family = &heads, .part = "ForCausalLM", .embedding = "embed_tokens", .bias = true});
  return out;
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "phi",
      .config_class = "PhiConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": null, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "attention_dropout": 0.0, "hidden_act": "gelu_new", "max_position_embeddings": 2048,
        "initializer_range": 0.02, "layer_norm_eps": 1e-05, "use_cache": true, "tie_word_embeddings": false,
        "qk_layernorm": false, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = classes(),
  });
}

}  // namespace calque::phi
