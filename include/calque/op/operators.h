// The C++ operators on tensors: a + b, a * 2, 1 - a, -a, a < b, a += b. Each remembers the line it was written on.
#pragma once

#include "calque/op/ops.h"

namespace calque {

#define CALQUE_TENSOR_OPERATOR(symbol, function)                                                                                        \
  inline Tensor operator symbol(const TensorArg& a, const Tensor& b) { return function(a.get(), b, a.where()); }                        \
  inline Tensor operator symbol(const TensorArg& a, const Scalar& b) { return function(a.get(), wrapped_scalar(b), a.where()); }        \
  inline Tensor operator symbol(const Scalar& a, const TensorArg& b) { return function(wrapped_scalar(a), b.get(), b.where()); }
CALQUE_TENSOR_OPERATOR(*, mul)
CALQUE_TENSOR_OPERATOR(/, div)
CALQUE_TENSOR_OPERATOR(%, remainder)
CALQUE_TENSOR_OPERATOR(&, bitwise_and)
CALQUE_TENSOR_OPERATOR(|, bitwise_or)
CALQUE_TENSOR_OPERATOR(^, bitwise_xor)
CALQUE_TENSOR_OPERATOR(==, eq)
CALQUE_TENSOR_OPERATOR(!=, ne)
CALQUE_TENSOR_OPERATOR(<, lt)
CALQUE_TENSOR_OPERATOR(<=, le)
CALQUE_TENSOR_OPERATOR(>, gt)
CALQUE_TENSOR_OPERATOR(>=, ge)
#undef CALQUE_TENSOR_OPERATOR

inline Tensor operator+(const TensorArg& a, const Tensor& b) { return add(a.get(), b, 1, a.where()); }
inline Tensor operator+(const TensorArg& a, const Scalar& b) { return add(a.get(), wrapped_scalar(b), 1, a.where()); }
inline Tensor operator+(const Scalar& a, const TensorArg& b) { return add(wrapped_scalar(a), b.get(), 1, b.where()); }
inline Tensor operator-(const TensorArg& a, const Tensor& b) { return sub(a.get(), b, 1, a.where()); }
inline Tensor operator-(const TensorArg& a, const Scalar& b) { return sub(a.get(), wrapped_scalar(b), 1, a.where()); }
inline Tensor operator-(const Scalar& a, const TensorArg& b) { return sub(wrapped_scalar(a), b.get(), 1, b.where()); }
inline Tensor operator+=(const TensorArg& a, const Tensor& b) { return add_(a.get(), b, 1, a.where()); }
inline Tensor operator-=(const TensorArg& a, const Tensor& b) { return sub_(a.get(), b, 1, a.where()); }
inline Tensor operator*=(const TensorArg& a, const Tensor& b) { return mul_(a.get(), b, a.where()); }
inline Tensor operator/=(const TensorArg& a, const Tensor& b) { return div_(a.get(), b, a.where()); }

}  // namespace calque
