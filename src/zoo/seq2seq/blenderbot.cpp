// Blenderbot: norms in front, learned positions.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::blenderbot {

namespace {

constexpr Seq2SeqStyle blenderbot_style{.module = "transformers.models.blenderbot.modeling_blenderbot",
                                        .prefix = "Blenderbot",
                                        .pre_norm = true,
                                        .dummy_mask = true,
                                        .dummy_decoder_ids = true};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(seq2seq_architecture(
      "blenderbot", "BlenderbotConfig",
      R"("vocab_size": 8008, "max_position_embeddings": 128, "encoder_layers": 2, "encoder_ffn_dim": 10240,
        "encoder_attention_heads": 32, "decoder_layers": 24, "decoder_ffn_dim": 10240, "decoder_attention_heads": 32,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 2560, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": false, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1, "forced_eos_token_id": 2, "encoder_no_repeat_ngram_size": 3, "is_decoder": false, "tie_word_embeddings": true)",
      seq2seq_classes(blenderbot_style, {"seq2seq-lm"})));
}

}  // namespace calque::blenderbot
