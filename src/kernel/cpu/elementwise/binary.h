// Elementwise functions of two operands. One list: name, the forms it has (FLOATS, INTS, BOTH; DIRECT: bfloat16 as it lies in
// memory; SINGLES: a function of its own for each type) and whether it is worth waking a thread for few elements. The dtype
// rules are in op/.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// clang-format off
#define CALQUE_BINARY(X)                                                                                         \
  X(add, BOTH_DIRECT, cheap) X(sub, BOTH_DIRECT, cheap) X(mul, BOTH_DIRECT, cheap) X(div, FLOATS_DIRECT, cheap)  \
  X(div_trunc, BOTH, cheap) X(div_floor, BOTH, expensive) X(remainder, BOTH, expensive) X(fmod, BOTH, expensive) \
  X(pow, BOTH, expensive) X(atan2, FLOATS, expensive) X(maximum, BOTH_DIRECT, cheap)                             \
  X(minimum, BOTH_DIRECT, cheap) X(fmax, FLOATS, cheap) X(fmin, FLOATS, cheap) X(bitwise_and, INTS, cheap)       \
  X(bitwise_or, INTS, cheap) X(bitwise_xor, INTS, cheap) X(shift_left, INTS, cheap) X(shift_right, INTS, cheap)  \
  X(eq, BOTH, cheap) X(ne, BOTH, cheap) X(lt, BOTH, cheap) X(le, BOTH, cheap) X(gt, BOTH, cheap)                 \
  X(ge, BOTH, cheap) X(logical_and, BOTH, cheap) X(logical_or, BOTH, cheap) X(logical_xor, BOTH, cheap)          \
  X(xlogy, FLOATS, expensive) X(hypot, FLOATS, expensive) X(copysign, FLOATS, cheap) X(nextafter, FLOATS, cheap) \
  X(logaddexp, SINGLES, expensive) X(logaddexp2, SINGLES, expensive)
// clang-format on

enum class Binary : uint8_t {
#define X(name, forms, cost) name,
  CALQUE_BINARY(X)
#undef X
};

// Exponents with a loop of their own.
#define CALQUE_POWER(X) \
  X(0, power_0)         \
  X(1, power_1)         \
  X(2, power_2)         \
  X(3, power_3)         \
  X(0.5, root)          \
  X(-1, reciprocal)     \
  X(-2, reciprocal_2)   \
  X(-0.5, reciprocal_root)

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
