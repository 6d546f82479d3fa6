// The C++ operators on tensors: a + b, a * 2, -a, a < b. Each remembers the line it was written on.
#pragma once

#include "calque/op/ops.h"

namespace calque {

inline Tensor operator+(const TensorArg& a, const Tensor& b) { return add(a.get(), b, 1, a.where()); }
inline Tensor operator*(const TensorArg& a, const Tensor& b) { return mul(a.get(), b, a.where()); }

}  // namespace calque
