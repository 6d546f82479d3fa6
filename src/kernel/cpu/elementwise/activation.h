// Elementwise functions of one operand with number parameters: clamps, activations, rounding to decimals.
// One list: name, the forms it has (FLOATS or BOTH) and whether it is worth waking a thread for few elements.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// The meaning of the parameters p, q, r in brackets.
// clang-format off
#define CALQUE_ACTIVATION(X)                                                                        \
  X(clamp, BOTH, cheap)            /* p: lowest, q: highest */                                      \
  X(clamp_min, BOTH, cheap)        /* p */                                                          \
  X(clamp_max, BOTH, cheap)        /* p */                                                          \
  X(threshold, BOTH, cheap)        /* p: threshold, q: value */                                     \
  X(leaky_relu, FLOATS, cheap)     /* p: slope */                                                   \
  X(elu, FLOATS, expensive)        /* p: negative coefficient, q: positive one, r: input scale */   \
  X(softplus, FLOATS, expensive)   /* p: beta, q: threshold */                                      \
  X(softshrink, FLOATS, cheap)     /* p: lambda */                                                  \
  X(hardshrink, FLOATS, cheap)     /* p: lambda */                                                  \
  X(logit, FLOATS, expensive)      /* */                                                            \
  X(nan_to_num, FLOATS, cheap)     /* p: for NaN, q: for inf, r: for -inf */                        \
  X(round_up, FLOATS, cheap)       /* p: power of ten to multiply by before rounding */             \
  X(round_down, FLOATS, cheap)     /* p: power of ten to divide by before rounding */
// clang-format on

enum class Activation : uint8_t {
#define X(name, forms, cost) name,
  CALQUE_ACTIVATION(X)
#undef X
};

// The same three numbers in each compute type; a loop reads those of its own.
struct ActivationParameters {
  double f64[3] = {0, 0, 0};
  float f32[3] = {0, 0, 0};
  int64_t i64[3] = {0, 0, 0};
};

// out = fn(self; p, q, r), computed as self's dtype or `common`. Parameters are taken in compute precision; with
// `in_dtype` they are converted to the dtype first, an overflow being a UserError.
void activation(Activation fn, DType common, const TensorBase& self, std::initializer_list<Scalar> parameters, bool in_dtype,
                const TensorBase& out);

}  // namespace calque::kernel
