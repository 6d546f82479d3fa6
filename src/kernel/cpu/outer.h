// beta * self + alpha * column * row, elementwise with broadcasting: the kernel of addr.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// With beta 0 self's values do not matter, NaN included. 16-bit floats round after every step, as PyTorch's kernel does.
void add_outer(const Tensor& self, const Tensor& column, const Tensor& row, const Scalar& beta, const Scalar& alpha,
               const Tensor& out);

}  // namespace calque::kernel
