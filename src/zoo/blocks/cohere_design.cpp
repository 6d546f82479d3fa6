#include "cohere_design.h"

namespace calque {

DecoderDesign cohere_design(const char* names, const Config& c, std::vector<LayerDesign> layers) {
  DecoderDesign out{.names = names,
                    .norm_class = "LayerNorm",
                    .norm = {NormKind::centred, c.number("layer_norm_eps")},
                    .attention = attention_design(c),
                    .feed_forward = feed_forward_design(c),
                    .parallel = true,
                    .before_feed_forward = nullptr,
                    .layers = std::move(layers),
                    .rotary = {{.interleaved = true}},
                    .logits_scale = c.number("logit_scale")};
  out.attention.turning = Turning::neighbours;
  out.attention.wide_turning = true;
  return out;
}

std::string cohere_defaults(std::string_view own) {
  return R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act": "silu",
        "max_position_embeddings": 8192, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "use_cache": true,
        "pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 255001, "tie_word_embeddings": true, "attention_bias": false,
        "attention_dropout": 0.0)" +
         std::string(own) + "}";
}

}  // namespace calque
