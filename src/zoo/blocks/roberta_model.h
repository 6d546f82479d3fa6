// RoBERTa: BERT's encoder with positions that start behind the padding's, and heads of its own. Families under other names (XLM-RoBERTa,
// CamemBERT) give theirs.
#pragma once

#include "bert_model.h"
#include "calque/hub/registry.h"

namespace calque {

struct RobertaPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "roberta"; }
  void init_weights(Module& module) override;
};

struct RobertaModel : BertLikeModel<RobertaModel, RobertaPretrained, BertEncoder> {
  static constexpr const char* torch_type = "transformers.models.roberta.modeling_roberta.RobertaModel";
  // `family` is the prefix of the class names, "transformers.models.roberta.modeling_roberta.Roberta".
  RobertaModel(const Config& c, bool pools, const char* family);
  std::string type_name() const override { return std::string(family) + "Model"; }
  std::vector<std::string> no_split_modules() const override;
  ModelOutput forward(const ModelInputs& in) override;
  const char* family;
};

// What a family registers: its names, and how many words there are by default.
Architecture roberta_architecture(const char* model_type, const HeadFamily& family, int64_t vocabulary);

}  // namespace calque
