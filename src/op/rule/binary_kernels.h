// The kernels of two-operand stanzas as templates over the function: what is computed in which dtype.
#pragma once

#include "calque/tensor/promotion.h"
#include "kernel/cpu/elementwise/binary.h"

namespace calque {

// In the promoted dtype.
template <kernel::Binary fn>
void arithmetic(const Tensor& a, const Tensor& b, const Tensor& out) {
  kernel::binary(fn, result_type(a, b), a, b, out);
}
template <kernel::Binary fn>
void arithmetic_scalar(const Tensor& a, const Scalar& b, const Tensor& out) {
  kernel::binary(fn, result_type(a, b), a, b, out);
}
template <kernel::Binary fn>
void scalar_arithmetic(const Scalar& a, const Tensor& b, const Tensor& out) {
  kernel::binary(fn, result_type(b, a), a, b, out);
}
// Integers as the default floating dtype.
template <kernel::Binary fn>
void float_arithmetic(const Tensor& a, const Tensor& b, const Tensor& out) {
  kernel::binary(fn, float_type(result_type(a, b)), a, b, out);
}
template <kernel::Binary fn>
void float_arithmetic_scalar(const Tensor& a, const Scalar& b, const Tensor& out) {
  kernel::binary(fn, float_type(result_type(a, b)), a, b, out);
}
template <kernel::Binary fn>
void scalar_float_arithmetic(const Scalar& a, const Tensor& b, const Tensor& out) {
  kernel::binary(fn, float_type(result_type(b, a)), a, b, out);
}
// Comparisons compute in the promoted dtype and store true or false.
template <kernel::Binary fn>
void compare(const Tensor& a, const Tensor& b, const Tensor& out) {
  kernel::binary(fn, result_type(a, b), a, b, out);
}
template <kernel::Binary fn>
void compare_scalar(const Tensor& a, const Scalar& b, const Tensor& out) {
  kernel::binary(fn, result_type(a, b), a, b, out);
}

}  // namespace calque
