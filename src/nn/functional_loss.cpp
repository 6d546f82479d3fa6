// torch.nn.functional: losses.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "calque/base/warning.h"
#include "calque/nn/convert.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/ctc.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "calque/op/mode.h"

namespace calque::functional {

int64_t reduction_enum(std::string_view reduction) {
  if (reduction == "none") return 0;
  if (reduction == "mean") return 1;
  if (reduction == "sum") return 2;
  throw UserError(std::string(reduction) + " is not a valid value for reduction");
}

// As they are written: nothing is asked of symbols.
static bool identical_sizes(const Tensor& a, const Tensor& b) {
  const SymIntList x = a.sym_sizes(), y = b.sym_sizes();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](SymInt s, SymInt t) { return identical(s, t); });
}
static std::string size_text(const Tensor& t) { return "torch.Size(" + str(t.sym_sizes()) + ")"; }

static std::vector<Tensor> broadcast(const Tensor& input, const Tensor& target) {
  if (!identical_sizes(input, target)) {
    warn("Using a target size (" + size_text(target) + ") that is different to the input size (" + size_text(input) +
         "). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.");
  }
  return broadcast_tensors(std::vector<Tensor>{input, target});
}

static Tensor reduced(const Tensor& loss, std::string_view reduction) {
  reduction_enum(reduction);  // refuses other words
  return reduction == "mean" ? loss.mean() : reduction == "sum" ? loss.sum() : loss;
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                     std::string_view reduction, double label_smoothing) {
  if (modes_active())
    if (const auto traced = offer_function("torch.nn.functional.cross_entropy", {input, target},
                                           {{"weight", to_value(weight)},
                                            {"ignore_index", to_value(ignore_index)},
                                            {"reduction", to_value(reduction)},
                                            {"label_smoothing", to_value(label_smoothing)}}))
      return traced->to_tensor();
  return cross_entropy_loss(input, target, weight, reduction_enum(reduction), ignore_index, label_smoothing);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                std::string_view reduction) {
  if (modes_active())
    if (const auto traced = offer_function(
            "torch.nn.functional.nll_loss", {input, target},
            {{"weight", to_value(weight)}, {"ignore_index", to_value(ignore_index)}, {"reduction", to_value(reduction)}}))
      return traced->to_tensor();
  return nll_loss_nd(input, target, weight, reduction_enum(reduction), ignore_index);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, std::string_view reduction) {
  if (!identical_sizes(input, target)) {
    throw UserError("Using a target size (" + size_text(target) + ") that is different to the input size (" +
                    size_text(input) + ") is deprecated. Please ensure they have the same size.");
  }
  const Tensor weights = weight.defined()
                             ? weight.expand(broadcast_sizes(target.sym_sizes(), weight.sym_sizes(), "binary_cross_entropy"))
                             : weight;
  return calque::binary_cross_entropy(input, target, weights, reduction_enum(reduction));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        std::string_view reduction, const Tensor& pos_weight) {
  if (modes_active())
    if (const auto traced = offer_function(
            "torch.nn.functional.binary_cross_entropy_with_logits", {input, target},
            {{"weight", to_value(weight)}, {"reduction", to_value(reduction)}, {"pos_weight", to_value(pos_weight)}}))
      return traced->to_tensor();
  if (!identical_sizes(input, target))
    throw UserError("Target size (" + size_text(target) + ") must be the same as input size (" + size_text(input) + ")");
  return calque::binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction_enum(reduction));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  if (modes_active())
    if (const auto traced =
            offer_function("torch.nn.functional.mse_loss", {input, target}, {{"reduction", to_value(reduction)}}))
      return traced->to_tensor();
  const std::vector<Tensor> both = broadcast(input, target);
  return calque::mse_loss(both[0], both[1], reduction_enum(reduction));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  const std::vector<Tensor> both = broadcast(input, target);
  return calque::l1_loss(both[0], both[1], reduction_enum(reduction));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction, double beta) {
  const std::vector<Tensor> both = broadcast(input, target);
  if (beta == 0) return calque::l1_loss(both[0], both[1], reduction_enum(reduction));
  return calque::smooth_l1_loss(both[0], both[1], reduction_enum(reduction), beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction, double delta) {
  const std::vector<Tensor> both = broadcast(input, target);
  return calque::huber_loss(both[0], both[1], reduction_enum(reduction), delta);
}

Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target) {
  if (reduction == "mean") {
    warn(
        "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by "
        "the batch size, and aligns "
        "with the KL div math definition.");
  }
  const bool batch = reduction == "batchmean";
  const Tensor loss = calque::kl_div(input, target, batch ? 2 : reduction_enum(reduction), log_target);
  return batch && input.dim() > 0 ? loss / Scalar(input.sym_size(0)) : loss;
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank, std::string_view reduction, bool zero_infinity) {
  return calque::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction_enum(reduction),
                          zero_infinity);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             std::string_view reduction) {
  return calque::cosine_embedding_loss(input1, input2, target, margin, reduction_enum(reduction));
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           std::string_view reduction) {
  return calque::margin_ranking_loss(input1, input2, target, margin, reduction_enum(reduction));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, std::string_view reduction) {
  return calque::hinge_embedding_loss(input, target, margin, reduction_enum(reduction));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                           double eps, bool swap, std::string_view reduction) {
  return calque::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction_enum(reduction));
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  return calque::soft_margin_loss(input, target, reduction_enum(reduction));
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        std::string_view reduction) {
  return calque::poisson_nll_loss(input, target, log_input, full, eps, reduction_enum(reduction));
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps,
                         std::string_view reduction) {
  if (any(var.lt(0)).item_as<bool>()) throw UserError("var has negative entry/entries");
  Tensor variance = var;
  if (!identical_sizes(var, input)) {
    // One variance for a row of inputs, or one dimension of one; anything else does not fit.
    const auto row = static_cast<size_t>(std::max<int64_t>(input.dim() - 1, 0));
    if (str(SymIntList(input.sym_sizes().data(), row)) == str(var.sym_sizes())) {
      variance = var.unsqueeze(-1);
    } else {
      SymInt others = input.dim() == var.dim() ? 0 : 2;
      for (int64_t d = 0; input.dim() == var.dim() && d < var.dim(); ++d)
        if (guard(input.sym_size(d) != var.sym_size(d))) others = others + var.sym_size(d);
      if (guard(others != 1)) throw UserError("var is of incorrect size");
    }
  }
  variance = variance.clone();
  {
    const GradModeScope no_grad(false);
    variance.clamp_(eps);
  }
  const Tensor logarithm = variance.log();
  const Tensor difference = input - target;
  Tensor loss = Scalar(0.5) * (logarithm + difference.pow(2) / variance);
  if (full) loss = loss + Scalar(0.5 * std::log(2 * std::numbers::pi));
  return reduced(loss, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   std::string_view reduction) {
  // One after the other: a graph keeps the order.
  const Tensor positive = target * log_sigmoid(input);
  const Tensor rest = Scalar(1) - target;
  const Tensor negative = rest * log_sigmoid(neg(input));
  Tensor loss = (positive + negative).neg();
  if (weight.defined()) loss = loss * weight;
  loss = loss.sum({input.dim() - 1}) / Scalar(input.sym_size(-1));
  return reduced(loss, reduction);
}

}  // namespace calque::functional
