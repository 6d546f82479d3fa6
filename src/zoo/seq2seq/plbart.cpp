// PLBart: BART for programs; shifted ids start with their own last token, a language code.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::plbart {

namespace {

constexpr Seq2SeqStyle plbart_style{.module = "transformers.models.plbart.modeling_plbart",
                                    .prefix = "PLBart",
                                    .embedding_norm = Seq2SeqStyle::EmbeddingNorm::with_positions,
                                    .position_offset = 2,
                                    .decoder_ids_from_input_ids = true,
                                    .shifted = wrap_last_token,
                                    .labels_switch_cache_off = false};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  std::vector<ModelClass> classes = seq2seq_classes(plbart_style, {"seq2seq-lm"});
  classes.push_back(
      seq2seq_class<Seq2SeqSequenceClassification>(plbart_style, "ForSequenceClassification", {"sequence-classification"}));
  Architecture architecture = seq2seq_architecture(
      "plbart", "PLBartConfig",
      R"("vocab_size": 50005, "max_position_embeddings": 1024, "encoder_layers": 6, "encoder_ffn_dim": 3072,
        "encoder_attention_heads": 12, "decoder_layers": 6, "decoder_ffn_dim": 3072, "decoder_attention_heads": 12,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 768, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.0,
        "init_std": 0.02, "classifier_dropout": 0.0, "scale_embedding": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "forced_eos_token_id": 2, "is_decoder": false, "tie_word_embeddings": true)",
      std::move(classes));
  architecture.attribute_map.emplace_back("initializer_range", "init_std");
  registry.add(std::move(architecture));
}

}  // namespace calque::plbart
