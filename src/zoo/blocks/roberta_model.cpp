#include "roberta_model.h"

#include "../heads/roberta_heads.h"
#include "calque/nn/init.h"

namespace calque {
namespace {

std::string class_prefix(std::string_view family) { return std::string(family.substr(family.rfind('.') + 1)); }

}  // namespace

void RobertaPretrained::init_weights(Module& module) {
  PretrainedModel::init_weights(module);
  if (auto* head = dynamic_cast<RobertaLMHead*>(&module)) init::zeros_(head->bias);
}

RobertaModel::RobertaModel(const Config& c, bool pools, const char* family)
    : BertLikeModel(c, pools, family, {.position_padding = c.optional_integer("pad_token_id")}), family(family) {}

std::vector<std::string> RobertaModel::no_split_modules() const {
  return {class_prefix(family) + "Embeddings", class_prefix(family) + "Layer"};
}

ModelOutput RobertaModel::forward(const ModelInputs& given) {
  ModelInputs in = given;
  check_one_input(in);
  if (!in[arg::position_ids].defined())
    in.set(arg::position_ids, positions_behind_padding(in, config().integer("pad_token_id")));
  return BertLikeModel::forward(in);
}

Architecture roberta_architecture(const char* model_type, const HeadFamily& family, int64_t vocabulary) {
  const std::string prefix = class_prefix(family.name);
  ModelClass base{prefix + "Model", {"default"}, [make = family.make_model](const Config& config) {
                    return finished_model(make(config, true));
                  }};
  return {
      .model_type = model_type,
      .config_class = prefix + "Config",
      .attribute_map = {},
      .defaults = R"({"vocab_size": )" + std::to_string(vocabulary) +
                  R"(, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "use_cache": true, "classifier_dropout": null,
        "is_decoder": false, "add_cross_attention": false, "tie_word_embeddings": true})",
      .schema = bert_schema(),
      .classes = {std::move(base), head_class<RobertaMaskedLM>({"pretraining", "masked-lm"}, {&family, "ForMaskedLM"}),
                  head_class<RobertaCausalLM>({"causal-lm"}, {&family, "ForCausalLM"}),
                  head_class<MultipleChoice>({"multiple-choice"}, {&family, "ForMultipleChoice", hidden_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&family, "ForQuestionAnswering"}),
                  head_class<RobertaSequenceClassification>({"sequence-classification"},
                                                            {&family, "ForSequenceClassification"}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&family, "ForTokenClassification", classifier_dropout})},
  };
}

}  // namespace calque
