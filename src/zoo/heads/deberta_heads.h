// The heads of DeBERTa, which both generations have: words (in the old form and the new), a label or a choice by the pooled
// first token. The base model is under the name "deberta".
#pragma once

#include "../blocks/deberta_parts.h"
#include "bert_heads.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/dropout.h"

namespace calque {

// The start values of heads that PretrainedModel does not know; whether it was one.
bool init_deberta_head(Module& module);
double deberta_classifier_dropout(const Config& config);  // cls_dropout, or hidden_dropout_prob
// Without a problem_type: squared errors for one label (the logits become a list then), cross entropy over labels that are
// not negative, or soft labels.
ModelOutput deberta_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                          const Tensor& labels);

struct DebertaMaskedLM : CopiedAs<DebertaMaskedLM, EncoderHead> {
  DebertaMaskedLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override { return cls ? tied_predictions(config(), "deberta") : TiedWeights(); }
  Child<Linear>* output_embeddings() override { return cls ? &(*cls)->predictions->decoder : nullptr; }
  std::optional<Child<BertOnlyMLMHead>> cls;
  std::optional<Child<DebertaOnlyMLMHead>> lm_predictions;
};

// A classifier on the pooled first token.
struct DebertaPooled : EncoderHead {
  DebertaPooled(const HeadClass& head, const Config& c, int64_t outputs);
  Tensor classified(const ModelOutput& base) { return classifier(dropout(pooler(base["last_hidden_state"]))); }
  Child<DebertaContextPooler> pooler;
  Child<Linear> classifier;
  Child<Dropout> dropout;
};

struct DebertaSequenceClassification : CopiedAs<DebertaSequenceClassification, DebertaPooled> {
  DebertaSequenceClassification(const HeadClass& head, const Config& c) : CopiedAs(head, c, num_labels(c)) {}
  ModelOutput forward(const ModelInputs& in) override;
};

struct DebertaMultipleChoice : CopiedAs<DebertaMultipleChoice, DebertaPooled> {
  DebertaMultipleChoice(const HeadClass& head, const Config& c) : CopiedAs(head, c, 1) {}
  ModelOutput forward(const ModelInputs& in) override;
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_choices(*this, sizes); }
};

// The architecture of one generation. `sizes` are the first of its defaults as JSON, without braces: the others are shared.
Architecture deberta_architecture(const char* model_type, const char* config_class, const std::string& sizes,
                                  std::vector<ModelClass> classes);
// The heads that both have.
std::vector<ModelClass> deberta_classes(const HeadFamily& family, ModelClass base_model);

}  // namespace calque
