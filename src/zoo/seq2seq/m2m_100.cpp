// M2M100: norms in front, sines as positions that are counted over the ids that are no padding.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::m2m_100 {

namespace {

constexpr Seq2SeqStyle m2m_100_style{.module = "transformers.models.m2m_100.modeling_m2m_100",
                                     .prefix = "M2M100",
                                     .pre_norm = true,
                                     .positions = Seq2SeqStyle::Positions::sinusoidal_of_ids,
                                     .position_offset = 2,
                                     .labels_switch_cache_off = false,
                                     .final_logits_bias = false};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(seq2seq_architecture(
      "m2m_100", "M2M100Config",
      R"("vocab_size": 128112, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.05, "decoder_layerdrop": 0.05, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "relu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "decoder_start_token_id": 2, "tie_word_embeddings": true)",
      {seq2seq_class<Seq2SeqModel>(m2m_100_style, "Model", {"default"}),
       seq2seq_class<Seq2SeqConditionalGeneration>(m2m_100_style, "ForConditionalGeneration", {"seq2seq-lm"})}));
}

}  // namespace calque::m2m_100
