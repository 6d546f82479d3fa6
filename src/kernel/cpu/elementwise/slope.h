// Elementwise gradients: of a result's gradient and the argument or result. One list: name, the forms it has (FLOATS or BOTH) and
// whether it is worth waking a thread for few elements.
#pragma once

#include <initializer_list>

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// The meaning of the parameters p, q, r in brackets. sigmoid, tanh and elu_result take the forward's result, the others its argument.
// clang-format off
#define CALQUE_SLOPE(X)                                                                             \
  X(sigmoid, FLOATS, cheap)                                                                         \
  X(tanh, FLOATS, cheap)                                                                            \
  X(threshold, BOTH, cheap)        /* p: threshold */                                               \
  X(gelu, FLOATS, expensive)                                                                        \
  X(gelu_tanh, FLOATS, expensive)                                                                   \
  X(silu, FLOATS, expensive)                                                                        \
  X(mish, FLOATS, expensive)                                                                        \
  X(hardtanh, FLOATS, cheap)       /* p: lowest, q: highest */                                      \
  X(hardswish, FLOATS, cheap)                                                                       \
  X(hardsigmoid, FLOATS, cheap)                                                                     \
  X(leaky_relu, FLOATS, cheap)     /* p: slope */                                                   \
  X(elu, FLOATS, expensive)        /* p: negative coefficient, q: positive one, r: input scale */   \
  X(elu_result, FLOATS, cheap)     /* the same */                                                   \
  X(softplus, FLOATS, expensive)   /* p: beta, q: threshold */                                      \
  X(softshrink, FLOATS, cheap)     /* p: lambda */                                                  \
  X(hardshrink, FLOATS, cheap)     /* p: lambda */                                                  \
  X(logit, FLOATS, cheap)                                                                           \
  X(logit_within, FLOATS, cheap)   /* p: lowest, q: highest */                                      \
  X(prelu_weight, FLOATS, cheap)                                                                    \
  X(log_sigmoid, THREE, cheap)     /* of gradient, argument and exp(-|argument|) */                 \
  X(prelu, THREE, cheap)           /* of gradient, argument and weight */                           \
  X(glu, THREE, expensive)         /* for the gate: of gradient, value and gate */
// clang-format on

enum class Slope : uint8_t {
#define X(name, forms, cost) name,
  CALQUE_SLOPE(X)
#undef X
};

// out = grad * d fn / d x, computed as `common`.
void slope(Slope fn, DType common, std::initializer_list<const TensorBase*> inputs, std::initializer_list<double> parameters,
           const TensorBase& out);

}  // namespace calque::kernel
