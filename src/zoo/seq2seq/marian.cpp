// Marian: BART without a norm of the embeddings, sines as positions, and vocabularies that encoder and decoder need not share.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::marian {

namespace {

constexpr Seq2SeqStyle marian_style{.module = "transformers.models.marian.modeling_marian",
                                    .prefix = "Marian",
                                    .positions = Seq2SeqStyle::Positions::sinusoidal,
                                    .embedding_scale = Seq2SeqStyle::EmbeddingScale::behind_given_too,
                                    .dummy_mask = true,
                                    .dummy_decoder_ids = true,
                                    .separate_vocabularies = true,
                                    .computed_positions = true};

void complete_marian(Config& config) {
  if (!config.has("decoder_vocab_size")) config.set("decoder_vocab_size", config.integer("vocab_size"));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  Architecture architecture = seq2seq_architecture(
      "marian", "MarianConfig",
      R"("vocab_size": 58101, "decoder_vocab_size": null, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": false, "pad_token_id": 58100, "bos_token_id": null, "eos_token_id": 0,
        "decoder_start_token_id": 58100, "forced_eos_token_id": 0, "share_encoder_decoder_embeddings": true, "is_decoder": false, "tie_word_embeddings": true)",
      {seq2seq_class<Seq2SeqModel>(marian_style, "Model", {"default"}),
       seq2seq_class<Seq2SeqConditionalGeneration>(marian_style, "MTModel", {"seq2seq-lm"}),
       seq2seq_class<Seq2SeqCausalLM>(marian_style, "ForCausalLM", {"causal-lm"})});
  architecture.complete = complete_marian;
  registry.add(std::move(architecture));
}

}  // namespace calque::marian
