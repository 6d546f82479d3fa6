// The heads of DeBERTa, which both generations have: words (in the old form and the new), a label or a choice by the pooled
// first token. The base model is under the name "deberta".
#pragma once

#include "../blocks/deberta_parts.h"
#include "bert_heads.h"
#include "calque/nn/functional.h"
#include "calque/op/ops.h"

namespace calque {

// The start values of heads that PretrainedModel does not know; whether it was one.
bool init_deberta_head(Module& module);
double deberta_classifier_dropout(const Config& config);  // cls_dropout, or hidden_dropout_prob
// Without a problem_type: squared errors for one label (the logits become a list then), cross entropy over labels that are
// not negative, or soft labels.
ModelOutput deberta_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                          const Tensor& labels);

template <class D, class BaseModel, class Pretrained>
struct DebertaMaskedLM : EncoderHead<D, BaseModel, Pretrained> {
  // `path` is the module's, "transformers.models.deberta.modeling_deberta.", `name` the family's, "Deberta".
  DebertaMaskedLM(const Config& c, const std::string& path, const std::string& name)
      : EncoderHead<D, BaseModel, Pretrained>(c, "deberta", false),
        cls(child_if<BertOnlyMLMHead>(c.flag("legacy"), *this, "cls", c, path + "Legacy" + name,
                                      c.optional_integer("embedding_size").value_or(c.integer("hidden_size")))),
        lm_predictions(child_if<DebertaOnlyMLMHead>(!c.flag("legacy"), *this, "lm_predictions", c, path + name)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    const Tensor& x = base["last_hidden_state"];
    return masked_lm_output(base, cls ? (*cls)(x) : (*lm_predictions)(x, *this->model->embeddings->word_embeddings->weight),
                            in.labels);
  }
  PretrainedModel::TiedWeights tied_weights() const override {
    return cls ? tied_predictions(this->config(), "deberta") : PretrainedModel::TiedWeights();
  }
  Child<Linear>* output_embeddings() override { return cls ? &(*cls)->predictions->decoder : nullptr; }
  std::optional<Child<BertOnlyMLMHead>> cls;
  std::optional<Child<DebertaOnlyMLMHead>> lm_predictions;
};

// A classifier on the pooled first token.
template <class D, class BaseModel, class Pretrained>
struct DebertaPooled : EncoderHead<D, BaseModel, Pretrained> {
  DebertaPooled(const Config& c, const std::string& path, int64_t outputs)
      : EncoderHead<D, BaseModel, Pretrained>(c, "deberta", false),
        pooler(this->template child<DebertaContextPooler>("pooler", c, path + "ContextPooler")),
        classifier(this->template child<Linear>("classifier", c.integer("hidden_size"), outputs)),
        dropout(this->template child<Dropout>("dropout", deberta_classifier_dropout(c))) {}
  Tensor classified(const ModelOutput& base) { return classifier(dropout(pooler(base["last_hidden_state"]))); }
  Child<DebertaContextPooler> pooler;
  Child<Linear> classifier;
  Child<Dropout> dropout;
};

template <class D, class BaseModel, class Pretrained>
struct DebertaSequenceClassification : DebertaPooled<D, BaseModel, Pretrained> {
  DebertaSequenceClassification(const Config& c, const std::string& path)
      : DebertaPooled<D, BaseModel, Pretrained>(c, path, num_labels(c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return deberta_classification_output(this->config(), base, this->classified(base), in.labels);
  }
};

template <class D, class BaseModel, class Pretrained>
struct DebertaMultipleChoice : DebertaPooled<D, BaseModel, Pretrained> {
  DebertaMultipleChoice(const Config& c, const std::string& path) : DebertaPooled<D, BaseModel, Pretrained>(c, path, 1) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(choices_as_rows(in));
    return multiple_choice_output(base, this->classified(base), in);
  }
};

}  // namespace calque
