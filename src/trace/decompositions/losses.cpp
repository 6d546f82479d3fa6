// Losses, forward and backward.

#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/sym/sym_math.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

enum Reduction : int64_t { none_of_them = 0, by_mean = 1, by_sum = 2 };

std::tuple<Tensor, Tensor> nll_loss_of(Tensor self, const Tensor& target, const Tensor& weight, int64_t reduction,
                                       SymInt ignore_index) {
  const int64_t dims = self.dim();
  const int64_t channel = dims < 2 ? 0 : 1;
  Tensor w;
  if (weight.defined()) {
    w = weight;
    if (dims > 1) {
      SymInts shape(static_cast<size_t>(dims), SymInt(1));
      shape[static_cast<size_t>(channel)] = weight.sym_size(0);
      w = view(weight, shape);
    }
    self = self * w;
  }
  const Tensor counted = ne(target, Scalar(ignore_index));
  const Tensor safe_target = where(counted, target, Scalar(0));
  const Tensor index = safe_target.unsqueeze(channel);
  Tensor result = -gather(self, channel, index).squeeze(channel);
  result = where(ne(target, Scalar(ignore_index)), result, Scalar(0));
  if (reduction == none_of_them && dims > 1)
    return {result, new_full(self, SymIntList{}, Scalar(0.0), std::nullopt, std::nullopt, std::nullopt, false)};
  Tensor total_weight;
  if (weight.defined()) {
    w = expand(w, self.sym_sizes());
    Tensor of_targets = gather(w, channel, index).squeeze(channel);
    of_targets = where(ne(target, Scalar(ignore_index)), of_targets, Scalar(0));
    total_weight = sum(of_targets);
  } else {
    total_weight = to(sum(ne(target, Scalar(ignore_index))), self);
  }
  if (reduction == by_sum)
    result = sum(result);
  else if (reduction == by_mean)
    result = sum(result) / total_weight;
  return {result, total_weight};
}

Tensor nll_loss_backward_of(Tensor grad_output, const Tensor& self, Tensor target, const Tensor& weight, int64_t reduction,
                            SymInt ignore_index, const Tensor& total_weight) {
  const int64_t channel = self.dim() < 2 ? 0 : 1;
  if (reduction == by_mean) grad_output = grad_output / total_weight;
  if (self.dim() == 1 && target.dim() > 0) target = select(target, 0, SymInt(0));
  target = target.unsqueeze(channel);
  const Tensor safe_target = where(ne(target, Scalar(ignore_index)), target, Scalar(0));
  Tensor grad_input = zeros_like(self, std::nullopt, std::nullopt, std::nullopt, false);
  grad_input = scatter(grad_input, channel, safe_target, Scalar(-1.0));
  if (grad_input.dim() > grad_output.dim() && grad_output.dim() > 0) grad_output = grad_output.unsqueeze(channel);
  if (weight.defined()) {
    SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(channel)] = weight.sym_size(0);
    grad_output = grad_output * reshape(weight, shape);
  }
  grad_output = where(ne(target, Scalar(ignore_index)), grad_output, Scalar(0));
  return grad_input * grad_output;
}

// `share` of the gradient that each element gets: divided by their number for a mean.
Scalar gradient_share(const Tensor& self, int64_t reduction, double share) {
  return reduction == by_mean ? Scalar(SymFloat(share) / sym_float(self.sym_numel())) : Scalar(share);
}

Tensor multi_margin_loss_of(const Tensor& self, const Tensor& given, const Scalar& p, const Scalar& margin,
                            const Tensor& given_weight, int64_t reduction) {
  const Tensor input = atleast_2d(self);
  const Tensor labels = atleast_1d(given);
  const SymInt classes = input.sym_size(1);
  require(labels.sym_numel() == input.sym_size(0), "multi_margin_loss", "there are not as many targets as inputs");
  const Tensor weight = given_weight.defined() ? atleast_1d(given_weight) : given_weight;
  if (weight.defined())
    require(weight.sym_numel() == classes, "multi_margin_loss", "there are not as many weights as classes");
  const Tensor target = labels.unsqueeze(1);
  const Tensor of_target = gather(input, 1, target);
  const Scalar distance = margin.is_boolean() ? Scalar(margin.to_int()) : margin;
  Tensor z = sub(number_tensor(distance), of_target) + input;
  z = clamp_min(z, Scalar(0));
  const bool squared = p.is_floating() ? p.to_double() != 1 : p.to_int() != 1;
  if (squared) z = z * z;
  if (weight.defined()) z = z * index(weight, TensorList{target});
  const Tensor others = ne(arange_on(input, Scalar(classes)), target);
  z = where(others, z, Scalar(0));
  if (reduction == by_mean) return mean(z);
  if (reduction == by_sum) return sum(z) / Scalar(z.sym_size(1));
  return mean(z, IntList{1});
}

std::tuple<Tensor, Tensor> multilabel_margin_loss_of(const Tensor& self, const Tensor& given, int64_t reduction) {
  const Tensor input = atleast_2d(self);
  const Tensor target = atleast_2d(given);
  const SymInt classes = input.sym_size(1);
  // Labels after the first -1 do not count.
  const Tensor position = arange_on(target, Scalar(classes));
  const Tensor is_end = eq(target, Scalar(-1));
  const Tensor end = amin(where(is_end, position, Scalar(classes)), IntList{-1}, true);
  const Tensor counted = lt(position, end);
  const Tensor safe = where(counted, target, Scalar(0));
  const Tensor of_targets = gather(input, -1, safe);
  const Tensor labels = where(counted, target, Scalar(-1));
  const Tensor is_target = any(eq(position, labels.unsqueeze(-1)), 1);
  Tensor z = sub(number_tensor(1.0), numpy_T(of_targets).unsqueeze(-1)) + input;
  z = clamp_min(z, Scalar(0)) / Scalar(classes);
  z = where(is_target, Scalar(0), z);
  if (reduction == by_mean)
    z = mean(sum(z, IntList{0, -1}));
  else
    z = reduction == by_sum ? sum(z) : sum(z, IntList{0, -1});
  return {z, reshape(converted(is_target, input.dtype()), given.sym_sizes())};
}

Scalar negative(const Scalar& s) { return Scalar(-s.sym_float()); }

}  // namespace

void decompose_losses(DecompositionBuilder& table) {
  table.add_cast("mse_loss", [](const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
    return reduced_loss(pow(self - target, Scalar(2)), reduction);
  });
  table.add_cast("mse_loss_backward",
                 [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
                   const Scalar norm = gradient_share(self, reduction, 2.0);
                   return (self - target) * norm * grad_output;
                 });
  table.add_cast("binary_cross_entropy",
                 [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) -> Tensor {
                   const auto floor = [&] {
                     return new_full(self, SymIntList{}, Scalar(-100), std::nullopt, std::nullopt, std::nullopt, false);
                   };
                   const Tensor other = target - 1;
                   const Tensor log_other = log1p(-self);
                   const Tensor first = other * maximum(log_other, floor());
                   const Tensor log_self = log(self);
                   Tensor loss = first - target * maximum(log_self, floor());
                   if (weight.defined()) loss = loss * weight;
                   return reduced_loss(loss, reduction);
                 });
  table.add("binary_cross_entropy_with_logits",
            [](const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
               int64_t reduction) -> Tensor {
              Tensor loss;
              if (pos_weight.defined()) {
                const Tensor log_weight = (pos_weight - 1) * target + 1;
                const Tensor other = (1 - target) * self;
                loss = other - log_weight * log_sigmoid(self);
              } else {
                const Tensor other = (1 - target) * self;
                loss = other - log_sigmoid(self);
              }
              if (weight.defined()) loss = loss * weight;
              return reduced_loss(converted(loss, target.dtype()), reduction);
            });
  table.add_promoted("huber_loss", {0, 1}, Kind::standard,
                     [](const Tensor& input, const Tensor& target, int64_t reduction, double delta) -> Tensor {
                       require(SymBool(delta > 0), "huber_loss", "delta must be positive");
                       const Tensor z = abs(input - target);
                       const Tensor inside = z < Scalar(delta);
                       const Tensor square = z * 0.5 * z;
                       return reduced_loss(where(inside, square, (z - 0.5 * delta) * delta), reduction);
                     });
  table.add_cast(
      "huber_loss_backward",
      [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double delta) -> Tensor {
        const Scalar norm = gradient_share(self, reduction, 1.0);
        const Tensor x = self - target;
        const Tensor below = x < Scalar(-delta);
        const Tensor low = grad_output * negative(norm) * delta;
        const Tensor above = x > Scalar(delta);
        const Tensor high = grad_output * norm * delta;
        const Tensor middle = x * norm * grad_output;
        return where(below, low, where(above, high, middle));
      });
  table.add_cast("smooth_l1_loss", [](const Tensor& self, const Tensor& target, int64_t reduction, double beta) -> Tensor {
    Tensor loss = abs(self - target);
    const Tensor inside = loss < Scalar(beta);
    const Tensor square = pow(loss, Scalar(2)) * 0.5 / beta;
    loss = where(inside, square, loss - 0.5 * beta);
    return reduced_loss(loss, reduction);
  });
  table.add_cast(
      "smooth_l1_loss_backward",
      [](const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double beta) -> Tensor {
        const Scalar norm = gradient_share(self, reduction, 1.0);
        const Tensor x = self - target;
        const Tensor distance = abs(x);
        const Tensor share = grad_output * norm;
        const Tensor inside = distance < Scalar(beta);
        const Tensor near = share * x / beta;
        const Tensor far = share * sign(x);
        return where(inside, near, far);
      });
  table.add_cast("soft_margin_loss", [](const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
    return reduced_loss(log1p(exp(-self * target)), reduction);
  });
  table.add("multi_margin_loss",
            [](const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin, const Tensor& weight,
               int64_t reduction) -> Tensor { return multi_margin_loss_of(self, target, p, margin, weight, reduction); });
  table.add("multilabel_margin_loss_forward",
            [](const Tensor& self, const Tensor& target, int64_t reduction) -> std::tuple<Tensor, Tensor> {
              return multilabel_margin_loss_of(self, target, reduction);
            });
  table.add("nll_loss_forward",
            [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
               SymInt ignore_index) -> std::tuple<Tensor, Tensor> {
              if (self.dim() != 1 || target.dim() != 0)
                require(self.sym_size(0) == target.sym_size(0), "nll_loss_forward",
                        "input and target have different batch sizes");
              return nll_loss_of(self, target, weight, reduction, ignore_index);
            });
  table.add("nll_loss2d_forward",
            [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore_index)
                -> std::tuple<Tensor, Tensor> { return nll_loss_of(self, target, weight, reduction, ignore_index); });
  table.add({"nll_loss_backward", "nll_loss2d_backward"},
            [](const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
               SymInt ignore_index, const Tensor& total_weight) -> Tensor {
              return nll_loss_backward_of(grad_output, self, target, weight, reduction, ignore_index, total_weight);
            });
}

}  // namespace calque
