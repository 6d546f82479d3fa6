// BERT: an encoder with learned positions and token types; with is_decoder also a decoder, with or without cross attention.
#include "blocks/bert_embeddings.h"
#include "blocks/bert_encoder.h"
#include "calque/hub/registry.h"
#include "heads/bert_heads.h"

namespace calque::bert {

namespace {

constexpr const char* bert_family = "transformers.models.bert.modeling_bert.Bert";

struct BertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "bert"; }
  std::vector<std::string> no_split_modules() const override { return {"BertEmbeddings", "BertLayer"}; }
  void init_weights(Module& module) override {
    if (!init_bert_head(module)) PretrainedModel::init_weights(module);
  }
};

struct BertModel : ModelOf<BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertModel";
  static constexpr const char* forward_arguments[] = {"input_ids",
                                                      "attention_mask",
                                                      "token_type_ids",
                                                      "position_ids",
                                                      "inputs_embeds",
                                                      "encoder_hidden_states",
                                                      "encoder_attention_mask",
                                                      "past_key_values",
                                                      "use_cache",
                                                      "head_mask",
                                                      "output_attentions",
                                                      "output_hidden_states"};
  explicit BertModel(const Config& c, bool pools = true)
      : ModelOf(c),
        embeddings(child<BertEmbeddings>("embeddings", c, bert_family)),
        encoder(child<BertEncoder>("encoder", c, bert_family)),
        pooler(child_if<BertPooler>(pools, *this, "pooler", c, bert_family)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const EncoderResult result = encoder(encoder_inputs(*this, in, embed(embeddings, in)));
    return encoder_output(result, pooler ? (*pooler)(result.last_hidden_state) : Tensor());
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }

  Child<BertEmbeddings> embeddings;
  Child<BertEncoder> encoder;
  std::optional<Child<BertPooler>> pooler;
};

struct BertForPreTraining : BertPreTraining<BertForPreTraining, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForPreTraining";
  explicit BertForPreTraining(const Config& c) : BertPreTraining(c, "bert", bert_family) {}
};
struct BertLMHeadModel : BertCausalLM<BertLMHeadModel, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertLMHeadModel";
  explicit BertLMHeadModel(const Config& c) : BertCausalLM(c, "bert", bert_family) {}
};
struct BertForMaskedLM : BertMaskedLM<BertForMaskedLM, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForMaskedLM";
  explicit BertForMaskedLM(const Config& c) : BertMaskedLM(c, "bert", bert_family) {}
};
struct BertForNextSentencePrediction : BertNextSentence<BertForNextSentencePrediction, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForNextSentencePrediction";
  explicit BertForNextSentencePrediction(const Config& c) : BertNextSentence(c, "bert", bert_family) {}
};
struct BertForSequenceClassification : PooledClassification<BertForSequenceClassification, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForSequenceClassification";
  explicit BertForSequenceClassification(const Config& c) : PooledClassification(c, "bert", classifier_dropout(c)) {}
};
struct BertForMultipleChoice : MultipleChoice<BertForMultipleChoice, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForMultipleChoice";
  explicit BertForMultipleChoice(const Config& c) : MultipleChoice(c, "bert", classifier_dropout(c)) {}
};
struct BertForTokenClassification : TokenClassification<BertForTokenClassification, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForTokenClassification";
  explicit BertForTokenClassification(const Config& c) : TokenClassification(c, "bert", classifier_dropout(c)) {}
};
struct BertForQuestionAnswering : SpanClassification<BertForQuestionAnswering, BertModel, BertPretrained> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertForQuestionAnswering";
  explicit BertForQuestionAnswering(const Config& c) : SpanClassification(c, "bert") {}
};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "bert",
      .config_class = "BertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "use_cache": true, "classifier_dropout": null, "is_decoder": false, "add_cross_attention": false,
        "bos_token_id": null, "eos_token_id": null, "tie_word_embeddings": true})",
      .classes = {model_class<BertModel>("BertModel", {"default"}),
                  model_class<BertForPreTraining>("BertForPreTraining", {"pretraining"}),
                  model_class<BertForNextSentencePrediction>("BertForNextSentencePrediction", {"next-sentence-prediction"}),
                  model_class<BertForMaskedLM>("BertForMaskedLM", {"masked-lm"}),
                  model_class<BertLMHeadModel>("BertLMHeadModel", {"causal-lm"}),
                  model_class<BertForMultipleChoice>("BertForMultipleChoice", {"multiple-choice"}),
                  model_class<BertForQuestionAnswering>("BertForQuestionAnswering", {"question-answering"}),
                  model_class<BertForSequenceClassification>("BertForSequenceClassification", {"sequence-classification"}),
                  model_class<BertForTokenClassification>("BertForTokenClassification", {"token-classification"})},
  });
}

}  // namespace calque::bert
