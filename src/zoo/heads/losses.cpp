#include "losses.h"

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/loss.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/padding.h"
#include "calque/trace/tracer.h"

namespace calque {

int64_t num_labels(const Config& config) {
  if (config.has("id2label")) return static_cast<int64_t>(config.find("id2label")->to_dict().items.size());
  return config.optional_integer("num_labels").value_or(2);
}

// A module made for one call is a step of its own for a tracer that takes such.
template <class Loss>
static Tensor loss_of_module(const Tensor& logits, const Tensor& labels) {
  return std::make_shared<Loss>()->call({logits, labels}).to_tensor();
}

Tensor class_loss(const Tensor& logits, const Tensor& labels) {
  return prefers_modules() ? loss_of_module<CrossEntropyLoss>(logits, labels) : functional::cross_entropy(logits, labels);
}

static Tensor squared_error(const Tensor& logits, const Tensor& labels) {
  return prefers_modules() ? loss_of_module<MSELoss>(logits, labels) : mse_loss(logits, labels);
}

Tensor binary_loss(const Tensor& logits, const Tensor& labels) {
  return prefers_modules() ? loss_of_module<BCEWithLogitsLoss>(logits, labels)
                           : functional::binary_cross_entropy_with_logits(logits, labels);
}

Tensor masked_lm_loss(const Tensor& logits, const Tensor& labels) {
  return class_loss(logits.to(DType::float32).view({-1, logits.sym_size(-1)}), labels.view({-1}));
}

Tensor token_loss(const Tensor& logits, const Tensor& labels) {
  return class_loss(logits.view({-1, logits.sym_size(-1)}), labels.view({-1}));
}

Tensor causal_lm_loss(const Tensor& logits, const Tensor& labels) {
  const Tensor padded = constant_pad_nd(labels, {0, 1}, -100);
  const Tensor shifted = padded.slice(-1, 1).contiguous();
  return masked_lm_loss(logits, shifted);
}

Tensor sequence_classification_loss(const Config& config, const Tensor& logits, const Tensor& labels) {
  const int64_t count = num_labels(config);
  const bool whole = labels.dtype() == DType::int64 || labels.dtype() == DType::int32;
  const std::string type = config.optional_text("problem_type")
                               .value_or(count == 1 ? "regression"
                                         : whole    ? "single_label_classification"
                                                    : "multi_label_classification");
  if (type == "regression")
    return count == 1 ? squared_error(logits.squeeze(), labels.squeeze()) : squared_error(logits, labels);
  if (type == "single_label_classification") return class_loss(logits.view({-1, count}), labels.view({-1}));
  if (type == "multi_label_classification") return binary_loss(logits, labels);
  throw UserError(ErrorKind::bad_file,
                  config.where() + ": \"problem_type\" is \"" + type +
                      "\", expected regression, single_label_classification or multi_label_classification");
}

Tensor question_answering_loss(const Tensor& start_logits, const Tensor& end_logits, const Tensor& start_positions,
                               const Tensor& end_positions) {
  const auto flat = [](const Tensor& positions) { return positions.dim() > 1 ? positions.squeeze(-1) : positions; };
  // A position outside of the text does not count.
  const SymInt length = start_logits.sym_size(1);
  const auto loss = [&](const Tensor& logits, const Tensor& positions) {
    const Tensor inside = clamp(flat(positions), 0, Scalar(length));
    return cross_entropy_loss(logits, inside, {}, 1, length);
  };
  const Tensor start = loss(start_logits, start_positions);
  const Tensor end = loss(end_logits, end_positions);
  return (start + end) / 2;
}

}  // namespace calque
