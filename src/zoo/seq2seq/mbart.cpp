// mBART: BART with norms in front, and shifted ids that start with their own last token, a language code.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::mbart {

namespace {

constexpr Seq2SeqStyle mbart_style{.module = "transformers.models.mbart.modeling_mbart",
                                   .prefix = "MBart",
                                   .pre_norm = true,
                                   .embedding_norm = Seq2SeqStyle::EmbeddingNorm::with_positions,
                                   .position_offset = 2,
                                   .dummy_mask = true,
                                   .decoder_ids_from_input_ids = true,
                                   .shifted = wrap_last_token,
                                   .keeps_attention_whole = true};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  std::vector<ModelClass> classes = seq2seq_classes(mbart_style, {"masked-lm", "seq2seq-lm"});
  classes.push_back(seq2seq_class<Seq2SeqQuestionAnswering>(mbart_style, "ForQuestionAnswering", {"question-answering"}));
  classes.push_back(
      seq2seq_class<Seq2SeqSequenceClassification>(mbart_style, "ForSequenceClassification", {"sequence-classification"}));
  registry.add(seq2seq_architecture(
      "mbart", "MBartConfig",
      std::string(seq2seq_large_defaults) +
          R"(, "classifier_dropout": 0.0, "scale_embedding": false, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "decoder_start_token_id": null, "forced_eos_token_id": 2, "is_decoder": false, "tie_word_embeddings": true)",
      std::move(classes)));
}

}  // namespace calque::mbart
