#include "calque/nn/loss.h"

#include "calque/nn/functional.h"

namespace calque {

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) { return functional::mse_loss(input, target, reduction); }
Tensor L1Loss::forward(const Tensor& input, const Tensor& target) { return functional::l1_loss(input, target, reduction); }
Tensor SoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::soft_margin_loss(input, target, reduction);
}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return functional::smooth_l1_loss(input, target, reduction, beta);
}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::huber_loss(input, target, reduction, delta);
}
Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::hinge_embedding_loss(input, target, margin, reduction);
}

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& options)
    : Typed(options.reduction),
      ignore_index(options.ignore_index),
      label_smoothing(options.label_smoothing),
      weight(register_buffer("weight", options.weight)) {}
Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing);
}

NLLLoss::NLLLoss(const CrossEntropyOptions& options)
    : Typed(options.reduction), ignore_index(options.ignore_index), weight(register_buffer("weight", options.weight)) {
  if (options.label_smoothing != 0) throw UserError("NLLLoss has no label_smoothing");
}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::nll_loss(input, target, weight, ignore_index, reduction);
}

BCELoss::BCELoss(const Tensor& weight, std::string reduction)
    : Typed(std::move(reduction)), weight(register_buffer("weight", weight)) {}
Tensor BCELoss::forward(const Tensor& input, const Tensor& target) {
  return functional::binary_cross_entropy(input, target, weight, reduction);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const Tensor& weight, std::string reduction, const Tensor& pos_weight)
    : Typed(std::move(reduction)),
      weight(register_buffer("weight", weight)),
      pos_weight(register_buffer("pos_weight", pos_weight)) {}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight);
}

MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const Tensor& weight, std::string reduction)
    : Typed(std::move(reduction)), weight(register_buffer("weight", weight)) {}
Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::multilabel_soft_margin_loss(input, target, weight, reduction);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::kl_div(input, target, reduction, log_target);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) {
  return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
}

Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
  return functional::cosine_embedding_loss(input1, input2, target, margin, reduction);
}
Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
  return functional::margin_ranking_loss(input1, input2, target, margin, reduction);
}
Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  return functional::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction);
}
Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::poisson_nll_loss(input, target, log_input, full, eps, reduction);
}
Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target, const Tensor& var) {
  return functional::gaussian_nll_loss(input, target, var, full, eps, reduction);
}

}  // namespace calque
