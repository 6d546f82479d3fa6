#include "calque/train/clip_grad.h"

#include <cmath>

#include "calque/grad/autograd.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/norms.h"
#include "calque/op/value.h"

namespace calque {
namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters)
    if (Tensor grad = grad_of(p); grad.defined()) out.push_back(std::move(grad));
  return out;
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  if (tensors.empty()) return tensor_of<float>({0.0F}, {1}).reshape({});
  std::vector<Tensor> norms;
  norms.reserve(tensors.size());
  for (const Tensor& t : tensors) norms.push_back(linalg_vector_norm(t, Scalar(norm_type)));
  Tensor total = linalg_vector_norm(stack(norms), Scalar(norm_type));
  if (error_if_nonfinite && !std::isfinite(total.item<double>()))
    throw UserError(
        "The total norm of order " + Value(norm_type).str() +
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the "
        "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
  return total;
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  const std::vector<Tensor> grads = gradients_of(parameters);
  Tensor total = get_total_norm(grads, norm_type, error_if_nonfinite);
  if (grads.empty()) return total;
  const Tensor factor = ((total + Scalar(1e-6)).reciprocal() * Scalar(max_norm)).clamp_(std::nullopt, Scalar(1.0));
  for (const Tensor& grad : grads) grad.mul_(factor);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard no_grad;
  for (const Tensor& grad : gradients_of(parameters)) grad.clamp_min_(Scalar(-clip_value)).clamp_max_(Scalar(clip_value));
}

}  // namespace calque
