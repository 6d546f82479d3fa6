// BlenderbotSmall: BART with positions from 0, the scale behind the embedding, and in the decoder a norm of the embeddings alone.
// The scale is that of transformers 4.40, for the ids of encoder and decoder; 5.x leaves the decoder's out.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::blenderbot_small {

namespace {

constexpr Seq2SeqStyle blenderbot_small_style{.module = "transformers.models.blenderbot_small.modeling_blenderbot_small",
                                              .prefix = "BlenderbotSmall",
                                              .embedding_norm = Seq2SeqStyle::EmbeddingNorm::before_decoder_positions,
                                              .embedding_scale = Seq2SeqStyle::EmbeddingScale::behind,
                                              .dummy_mask = true,
                                              .dummy_decoder_ids = true};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(seq2seq_architecture(
      "blenderbot-small", "BlenderbotSmallConfig",
      R"("vocab_size": 50265, "max_position_embeddings": 512, "encoder_layers": 8, "encoder_ffn_dim": 2048,
        "encoder_attention_heads": 16, "decoder_layers": 8, "decoder_ffn_dim": 2048, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 512, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": false, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1, "forced_eos_token_id": 2, "is_decoder": false, "tie_word_embeddings": true)",
      seq2seq_classes(blenderbot_small_style, {"seq2seq-lm"})));
}

}  // namespace calque::blenderbot_small
