// Elementwise functions of one operand without parameters. One list: name, the forms it has (FLOATS, INTS or BOTH) and
// whether it is worth waking a thread for few elements. The dtype rules are in op/.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {

// clang-format off
#define CALQUE_UNARY(X)                                                                                               \
  X(abs, BOTH, cheap) X(neg, BOTH, cheap) X(bitwise_not, INTS, cheap) X(logical_not, BOTH, cheap)                     \
  X(sign, BOTH, cheap) X(signbit, BOTH, cheap) X(isnan, BOTH, cheap) X(isinf, BOTH, cheap) X(isfinite, BOTH, cheap)   \
  X(isposinf, BOTH, cheap) X(isneginf, BOTH, cheap) X(ceil, FLOATS, cheap) X(floor, FLOATS, cheap)                    \
  X(trunc, FLOATS, cheap) X(round, FLOATS, cheap) X(frac, FLOATS, cheap) X(sqrt, FLOATS, cheap)                       \
  X(rsqrt, FLOATS, cheap) X(reciprocal, FLOATS, cheap) X(deg2rad, FLOATS, cheap) X(rad2deg, FLOATS, cheap)            \
  X(angle, FLOATS, cheap) X(exp, FLOATS, expensive) X(exp2, FLOATS, expensive) X(expm1, FLOATS, expensive)            \
  X(log, FLOATS, expensive) X(log2, FLOATS, expensive) X(log10, FLOATS, expensive) X(log1p, FLOATS, expensive)        \
  X(sin, FLOATS, expensive) X(cos, FLOATS, expensive) X(tan, FLOATS, expensive) X(asin, FLOATS, expensive)            \
  X(acos, FLOATS, expensive) X(atan, FLOATS, expensive) X(sinh, FLOATS, expensive) X(cosh, FLOATS, expensive)         \
  X(tanh, FLOATS, expensive) X(asinh, FLOATS, expensive) X(acosh, FLOATS, expensive) X(atanh, FLOATS, expensive)      \
  X(erf, FLOATS, expensive) X(erfc, FLOATS, expensive) X(lgamma, FLOATS, expensive) X(sigmoid, FLOATS, expensive)     \
  X(sinc, FLOATS, expensive) X(special_entr, FLOATS, expensive) X(relu, BOTH, cheap) X(silu, FLOATS, expensive)       \
  X(mish, FLOATS, expensive) X(hardswish, FLOATS, cheap) X(hardsigmoid, FLOATS, cheap) X(gelu, FLOATS, expensive)     \
  X(gelu_tanh, FLOATS, expensive) X(log_sigmoid, FLOATS, expensive)
// clang-format on

enum class Unary : uint8_t {
#define X(name, forms, cost) name,
  CALQUE_UNARY(X)
#undef X
};

// out = fn(self), computed as `common`. UserError "... not implemented for ..." where the function has no form for it.
void unary(Unary fn, DType common, const TensorBase& self, const TensorBase& out);

}  // namespace calque::kernel
