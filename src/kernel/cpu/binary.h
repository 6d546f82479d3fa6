// Elementwise functions of two operands. One enumeration, one table per instruction set; the dtype rules are in op/.
#pragma once

#include "calque/tensor/tensor.h"
#include "kernel/cpu/element_loop.h"

namespace calque::kernel {

enum class Binary : uint8_t {
  add, sub, rsub, mul, div, div_trunc, div_floor, remainder, fmod, pow, atan2, maximum, minimum, fmax, fmin, bitwise_and, bitwise_or, bitwise_xor,
  shift_left, shift_right, eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor, xlogy, hypot, copysign, nextafter, logaddexp, logaddexp2,
  count
};

struct BinaryRow {
  ElementFn f32, f64, i64;  // null where the function has no such form
};

// out = fn(a, b), computed as `common`. An operand may be a Scalar.
void binary(Binary fn, DType common, const Tensor& a, const Tensor& b, const Tensor& out);
void binary(Binary fn, DType common, const Tensor& a, const Scalar& b, const Tensor& out);
void binary(Binary fn, DType common, const Scalar& a, const Tensor& b, const Tensor& out);
// out = a + alpha * b (rounded once per PyTorch's order: the product in compute precision)
void add_scaled(DType common, const Tensor& a, const Tensor& b, const Scalar& alpha, bool subtract, const Tensor& out);

}  // namespace calque::kernel
