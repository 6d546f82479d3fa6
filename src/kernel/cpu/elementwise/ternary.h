// Elementwise functions of two or three tensors that are no plain arithmetic: selection, interpolation, clamping by
// tensors, gated activations. One list: name and the forms it has (FLOATS, NUMBERS or ALL, which adds complex).
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

// clang-format off
#define CALQUE_TERNARY(X)                                                                                             \
  X(where, ALL)         /* a ? b : c */                                                                               \
  X(clamp, NUMBERS)     /* a within [b, c], NaN of any wins */                                                        \
  X(lerp, FLOATS)       /* from a to b by c */                                                                        \
  X(addcmul, NUMBERS)   /* a + value * b * c */                                                                       \
  X(addcdiv, FLOATS)    /* a + value * b / c */
// clang-format on

enum class Ternary : uint8_t {
#define X(name, forms) name,
  CALQUE_TERNARY(X)
#undef X
};

// Of one or two tensors, floats only: name, whether it is worth waking a thread for few elements.
#define CALQUE_GATED(X)     \
  X(prelu, cheap)           \
  X(glu, expensive)         \
  X(log_sigmoid, expensive) \
  X(scale, cheap)

enum class Gated : uint8_t {
#define X(name, cost) name,
  CALQUE_GATED(X)
#undef X
};

// out = fn(a, b, c), computed as `common`. `value` is addcmul's and addcdiv's factor.
void ternary(Ternary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& c, const Scalar& value,
             const TensorBase& out);
void ternary(Ternary fn, DType common, const TensorBase& a, const TensorBase& b, const Scalar& c, const TensorBase& out);
// out = mask ? value : self; `value` is a 0-d tensor.
void masked_fill(const TensorBase& self, const TensorBase& mask, const TensorBase& value, const TensorBase& out);
void masked_fill(const TensorBase& self, const TensorBase& mask, const Scalar& value, const TensorBase& out);

// out = a > 0 ? a : a * weight
void prelu(const TensorBase& self, const TensorBase& weight, const TensorBase& out);
// out = a * sigmoid(b)
void glu(const TensorBase& a, const TensorBase& b, const TensorBase& out);
// output = log(sigmoid(self)), buffer = exp(-|self|)
void log_sigmoid_forward(const TensorBase& self, const TensorBase& output, const TensorBase& buffer);
// out = input * mask * scale, each product rounded to the dtype
void scale_masked(const TensorBase& input, const TensorBase& mask, double scale, const TensorBase& out);

}  // namespace calque::kernel
