#include "op/gradient/products.h"

#include "calque/op/library.h"
#include "calque/op/mode.h"

namespace calque::gradient {

Tensor times(const Tensor& t, const Scalar& s) {
  if (!s.is_symbolic() && s.equals(1)) return t;
  static constinit OperatorByName mul("aten::mul.Scalar");
  return call(mul.get(), {t, s}).to_tensor();
}

Tensor conj(const Tensor& t) { return is_complex(t.dtype()) ? t.conj() : t; }

namespace {

bool has_contiguous_columns(const Meta& m) {
  return guard_or(m.strides[0] == 1, false) && guard_or(m.strides[1] == m.sizes[0], false);
}

}  // namespace

Tensor of_left_matrix(const Tensor& grad, const Tensor& right, const Meta& left, const Scalar& alpha) {
  if (has_contiguous_columns(left)) return times(conj(right).mm(grad.t()).t(), alpha);
  return times(grad.mm(conj(right.t())), alpha);
}

Tensor of_right_matrix(const Tensor& grad, const Tensor& left, const Meta& right, const Scalar& alpha) {
  if (has_contiguous_columns(right)) return times(grad.t().mm(conj(left)).t(), alpha);
  return times(conj(left.t()).mm(grad), alpha);
}

Tensor of_left_batch(const Tensor& grad, const Tensor& right, const Scalar& alpha) {
  return times(grad.bmm(conj(right.transpose(1, 2))), alpha);
}

Tensor of_right_batch(const Tensor& grad, const Tensor& left, const Scalar& alpha) {
  return times(conj(left.transpose(1, 2)).bmm(grad), alpha);
}

}  // namespace calque::gradient
