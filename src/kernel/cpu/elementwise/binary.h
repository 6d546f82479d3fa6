// Elementwise functions of two operands. One enumeration, one table per instruction set; the dtype rules are in op/.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// clang-format off
enum class Binary : uint8_t {
  add, sub, mul, div, div_trunc, div_floor, remainder, fmod, pow, atan2, maximum, minimum, fmax, fmin, bitwise_and, bitwise_or, bitwise_xor,
  shift_left, shift_right, eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor, xlogy, hypot, copysign, nextafter, logaddexp, logaddexp2,
  count
};
// clang-format on

// Exponents with a loop of their own, in the order of pow_table.
inline constexpr double pow_exponents[] = {0, 1, 2, 3, 0.5, -1, -2, -0.5};

// out = fn(a, b), computed as `common`. An operand may be a Scalar; not both.
void binary(Binary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& out);
void binary(Binary fn, DType common, const TensorBase& a, const Scalar& b, const TensorBase& out);
void binary(Binary fn, DType common, const Scalar& a, const TensorBase& b, const TensorBase& out);
// The same where a one-element second operand keeps its float32 value beside 16-bit floats, as PyTorch's add, sub, mul
// and div have it.
void binary_wide(Binary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& out);
void binary_wide(Binary fn, DType common, const TensorBase& a, const Scalar& b, const TensorBase& out);
// out = a + alpha * b, or a - alpha * b.
void add_scaled(DType common, const TensorBase& a, const TensorBase& b, const Scalar& alpha, bool subtract,
                const TensorBase& out);
void add_scaled(DType common, const TensorBase& a, const Scalar& b, const Scalar& alpha, bool subtract,
                const TensorBase& out);
void add_scaled(DType common, const Scalar& a, const TensorBase& b, const Scalar& alpha, bool subtract,
                const TensorBase& out);
// self to a number: small whole and half exponents by multiplication and roots, as PyTorch does.
void pow_scalar(DType common, const TensorBase& self, const Scalar& exponent, const TensorBase& out);

}  // namespace calque::kernel
