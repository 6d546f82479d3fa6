#include "op/gradient/products.h"

#include "op/gradient/formulas.h"

namespace calque::gradient {

Tensor conjugated(const Tensor& t) { return is_complex(t.dtype()) ? t.conj() : t; }

namespace {

bool has_contiguous_columns(const Meta& m) {
  return guard_or(m.strides[0] == 1, false) && guard_or(m.strides[1] == m.sizes[0], false);
}

}  // namespace

Tensor of_left_matrix(const Tensor& grad, const Tensor& right, const Meta& left, const Scalar& alpha) {
  if (has_contiguous_columns(left)) return maybe_times(conjugated(right).mm(grad.t()).t(), alpha);
  return maybe_times(grad.mm(conjugated(right.t())), alpha);
}

Tensor of_right_matrix(const Tensor& grad, const Tensor& left, const Meta& right, const Scalar& alpha) {
  if (has_contiguous_columns(right)) return maybe_times(grad.t().mm(conjugated(left)).t(), alpha);
  return maybe_times(conjugated(left.t()).mm(grad), alpha);
}

Tensor of_left_batch(const Tensor& grad, const Tensor& right, const Scalar& alpha) {
  return maybe_times(grad.bmm(conjugated(right.transpose(1, 2))), alpha);
}

Tensor of_right_batch(const Tensor& grad, const Tensor& left, const Scalar& alpha) {
  return maybe_times(conjugated(left.transpose(1, 2)).bmm(grad), alpha);
}

}  // namespace calque::gradient
