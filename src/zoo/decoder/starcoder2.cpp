// StarCoder2: LayerNorms, a plain feed-forward, biases, a window where asked for.
#include "zoo/blocks/decoder_model.h"

namespace calque::starcoder2 {

namespace {

constexpr const char* names = "transformers.models.starcoder2.modeling_starcoder2.Starcoder2";

DecoderDesign design(const Config& c) {
  DecoderDesign out{.names = names,
                    .norm = {NormKind::layer, c.number("norm_epsilon")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c, c.flag("use_bias")),
                    .layers = layer_designs(c),
                    .embeddings_dropout_rate = c.number("embedding_dropout")};
  out.attention.bias = out.attention.output_bias = c.flag("use_bias");
  out.attention.output_dropout = c.number("residual_dropout");
  out.feed_forward.kind = FeedForwardDesign::Kind::plain;
  out.feed_forward.up = "c_fc";
  out.feed_forward.down = "c_proj";
  out.feed_forward.dropout = c.number("residual_dropout");
  return out;
}

void complete(Config& config) {
  complete_key_heads(config);
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily heads{names, "model", decoder_of<design>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "starcoder2",
      .config_class = "Starcoder2Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
        "num_attention_heads": 24, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh",
        "max_position_embeddings": 4096, "initializer_range": 0.018042, "norm_epsilon": 1e-05, "use_cache":
        true, "bos_token_id": 50256, "eos_token_id": 50256, "pad_token_id": null, "sliding_window": null,
        "attention_dropout": 0.0, "residual_dropout": 0.0, "embedding_dropout": 0.0, "use_bias": true,
        "tie_word_embeddings": true})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = decoder_classes(heads, 3),
  });
}

}  // namespace calque::starcoder2
