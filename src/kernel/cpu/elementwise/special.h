// Special functions of one operand that have no vector form: gamma's relatives, inverse error functions, Bessel functions.
// float32 and narrower compute in double precision and round once.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// name of the operator, function of double
// clang-format off
#define CALQUE_SPECIAL(X)                                                                                                    \
  X(digamma) X(erfinv) X(i0) X(special_i0e) X(special_i1) X(special_i1e) X(special_ndtri) X(special_log_ndtr) X(special_erfcx)
// clang-format on

enum class Special : uint8_t {
#define X(name) name,
  CALQUE_SPECIAL(X)
#undef X
};

// out = fn(self), computed as `common`.
void special(Special fn, DType common, const TensorBase& self, const TensorBase& out);
// The n-th derivative of digamma, n >= 0.
void polygamma(int64_t n, DType common, const TensorBase& self, const TensorBase& out);
// The logarithm of the multivariate gamma function of dimension p.
void mvlgamma(int64_t p, DType common, const TensorBase& self, const TensorBase& out);

}  // namespace calque::kernel
