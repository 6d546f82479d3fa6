// BART: norms behind attention and feed-forward, learned positions with two rows in front, a norm of the embeddings.
#include "zoo/heads/seq2seq_heads.h"

namespace calque::bart {

namespace {

constexpr Seq2SeqStyle bart_style{.module = "transformers.models.bart.modeling_bart",
                                  .prefix = "Bart",
                                  .embedding_norm = Seq2SeqStyle::EmbeddingNorm::with_positions,
                                  .position_offset = 2,
                                  .dummy_mask = true,
                                  .decoder_ids_from_input_ids = true};

// Three labels where a file says nothing: BART's classifiers are for natural language inference.
void complete_bart(Config& config) {
  if (config.has("id2label") || config.has("num_labels")) return;
  std::vector<std::pair<Value, Value>> names, ids;
  for (int64_t i = 0; i < 3; ++i) {
    names.emplace_back(std::to_string(i), "LABEL_" + std::to_string(i));
    ids.emplace_back("LABEL_" + std::to_string(i), i);
  }
  config.set("id2label", dict(std::move(names)));
  config.set("label2id", dict(std::move(ids)));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  std::vector<ModelClass> classes = seq2seq_classes(bart_style, {"pretraining", "masked-lm", "seq2seq-lm"});
  classes.push_back(seq2seq_class<Seq2SeqQuestionAnswering>(bart_style, "ForQuestionAnswering", {"question-answering"}));
  classes.push_back(
      seq2seq_class<Seq2SeqSequenceClassification>(bart_style, "ForSequenceClassification", {"sequence-classification"}));
  Architecture architecture = seq2seq_architecture(
      "bart", "BartConfig",
      R"("vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "activation_function": "gelu", "d_model": 1024, "dropout": 0.1,
        "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.02, "classifier_dropout": 0.0, "scale_embedding": false,
        "use_cache": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "is_encoder_decoder": true,
        "decoder_start_token_id": 2, "forced_eos_token_id": 2, "is_decoder": false, "tie_word_embeddings": true)",
      std::move(classes));
  architecture.complete = complete_bart;
  registry.add(std::move(architecture));
}

}  // namespace calque::bart
