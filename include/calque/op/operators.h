// The C++ operators on tensors: a + b, a * 2, 1 - a, -a, a < b, a += b. Each remembers the line it was written on, and
// a trace at the user's level shows it as Python's operator module would: operator.add.
#pragma once

#include "calque/op/index.h"
#include "calque/op/tensor.h"

namespace calque {

#define CALQUE_TENSOR_OPERATOR(symbol)                         \
  Tensor operator symbol(const TensorArg& a, const Tensor& b); \
  Tensor operator symbol(const TensorArg& a, const Scalar& b); \
  Tensor operator symbol(const Scalar& a, const TensorArg& b);
CALQUE_TENSOR_OPERATOR(+)
CALQUE_TENSOR_OPERATOR(-)
CALQUE_TENSOR_OPERATOR(*)
CALQUE_TENSOR_OPERATOR(/)
CALQUE_TENSOR_OPERATOR(%)
CALQUE_TENSOR_OPERATOR(&)
CALQUE_TENSOR_OPERATOR(|)
CALQUE_TENSOR_OPERATOR(^)
CALQUE_TENSOR_OPERATOR(==)
CALQUE_TENSOR_OPERATOR(!=)
CALQUE_TENSOR_OPERATOR(<)
CALQUE_TENSOR_OPERATOR(<=)
CALQUE_TENSOR_OPERATOR(>)
CALQUE_TENSOR_OPERATOR(>=)
#undef CALQUE_TENSOR_OPERATOR

Tensor operator-(const TensorArg& a);
Tensor operator~(const TensorArg& a);
#define CALQUE_ASSIGNING_OPERATOR(symbol)                      \
  Tensor operator symbol(const TensorArg& a, const Tensor& b); \
  Tensor operator symbol(const TensorArg& a, const Scalar& b);
CALQUE_ASSIGNING_OPERATOR(+=)
CALQUE_ASSIGNING_OPERATOR(-=)
CALQUE_ASSIGNING_OPERATOR(*=)
CALQUE_ASSIGNING_OPERATOR(/=)
#undef CALQUE_ASSIGNING_OPERATOR

}  // namespace calque
