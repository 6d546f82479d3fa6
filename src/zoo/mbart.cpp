// mBART: BART with norms in front, and shifted ids that start with their own last token, a language code.
#include "heads/seq2seq_heads.h"

namespace calque::mbart {

namespace {

const Seq2SeqStyle mbart_style{.module = "transformers.models.mbart.modeling_mbart",
                               .prefix = "MBart",
                               .pre_norm = true,
                               .embedding_norm = true,
                               .position_offset = 2,
                               .decoder_ids_from_input_ids = true,
                               .starts_with_last_token = true,
                               .keeps_attention_whole = true};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "mbart",
      .config_class = "MBartConfig",
      .attribute_map = {{"num_attention_heads", "encoder_attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "encoder_layers"}},
      .defaults = R"({"vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
        "activation_function": "gelu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "classifier_dropout": 0.0, "scale_embedding": false, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "decoder_start_token_id": null, "forced_eos_token_id": 2, "is_decoder": false, "tie_word_embeddings": true})",
      .schema = seq2seq_schema(),
      .classes = {seq2seq_class<Seq2SeqModel>(mbart_style, "Model", {"default"}),
                  seq2seq_class<Seq2SeqConditionalGeneration>(mbart_style, "ForConditionalGeneration",
                                                              {"masked-lm", "seq2seq-lm"}),
                  seq2seq_class<Seq2SeqCausalLM>(mbart_style, "ForCausalLM", {"causal-lm"}),
                  seq2seq_class<Seq2SeqQuestionAnswering>(mbart_style, "ForQuestionAnswering", {"question-answering"}),
                  seq2seq_class<Seq2SeqSequenceClassification>(mbart_style, "ForSequenceClassification",
                                                               {"sequence-classification"})},
  });
}

}  // namespace calque::mbart
