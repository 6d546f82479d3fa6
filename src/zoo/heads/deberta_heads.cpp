#include "deberta_heads.h"

#include "calque/nn/init.h"

namespace calque {

bool init_deberta_head(Module& module) {
  if (auto* head = dynamic_cast<DebertaLMPredictionHead*>(&module)) {
    init::zeros_(head->bias);
    return true;
  }
  return init_bert_head(module);
}

double deberta_classifier_dropout(const Config& config) {
  return config.optional_number("cls_dropout").value_or(config.number("hidden_dropout_prob"));
}

ModelOutput deberta_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                          const Tensor& labels) {
  if (!labels.defined() || config.has("problem_type")) return sequence_classification_output(config, base, logits, labels);
  if (num_labels(config) == 1) {
    const Tensor flat = logits.view({-1}).to(labels.dtype());
    return labelled_output(base, mse_loss(flat, labels.view({-1})), flat);
  }
  if (labels.dim() > 1 && !(!labels.sym_size(-1).is_symbolic() && labels.size(-1) == 1)) {
    const Tensor likelihood = log_softmax(logits, -1) * labels;
    return labelled_output(base, neg(likelihood.sum({-1}).mean()), logits);
  }
  // The mean over labels that are there; 0 when there are none.
  const Tensor flat = labels.view({-1}).to(DType::int64);
  const Tensor there = ge(flat, 0);
  const Tensor each = cross_entropy_loss(logits.to(DType::float32), where(there, flat, -100), {}, 0);
  return labelled_output(base, each.sum() / clamp(there.to(DType::float32).sum(), 1), logits);
}

}  // namespace calque
