// BERT: an encoder with learned positions and token types; with is_decoder also a decoder, with or without cross attention.
#include "calque/hub/registry.h"
#include "zoo/blocks/bert_model.h"
#include "zoo/heads/bert_heads.h"

namespace calque::bert {

namespace {

constexpr char bert_family[] = "transformers.models.bert.modeling_bert.Bert";

struct BertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "bert"; }
  std::vector<std::string> no_split_modules() const override { return {"BertEmbeddings", "BertLayer"}; }
  void init_weights(Module& module) override {
    if (!init_bert_head(module)) PretrainedModel::init_weights(module);
  }
};

struct BertModel : BertLikeModel<BertModel, BertPretrained, BertEncoder> {
  static constexpr const char* torch_type = "transformers.models.bert.modeling_bert.BertModel";
  explicit BertModel(const Config& c, bool pools = true) : BertLikeModel(c, pools, bert_family) {}
};

constexpr HeadFamily bert_heads{bert_family, "bert", made_model<BertModel>};

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
      .schema = bert_schema(),
      .classes = {model_class<BertModel>("BertModel", {"default"}),
                  head_class<BertPreTraining>({"pretraining"}, {&bert_heads, "ForPreTraining"}),
                  head_class<BertNextSentence>({"next-sentence-prediction"}, {&bert_heads, "ForNextSentencePrediction"}),
                  head_class<BertMaskedLM>({"masked-lm"}, {&bert_heads, "ForMaskedLM"}),
                  head_class<BertCausalLM>({"causal-lm"}, {&bert_heads, "LMHeadModel"}),
                  head_class<MultipleChoice>({"multiple-choice"}, {&bert_heads, "ForMultipleChoice", classifier_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&bert_heads, "ForQuestionAnswering"}),
                  head_class<PooledClassification>({"sequence-classification"},
                                                   {&bert_heads, "ForSequenceClassification", classifier_dropout}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&bert_heads, "ForTokenClassification", classifier_dropout})},
  });
}

}  // namespace calque::bert
