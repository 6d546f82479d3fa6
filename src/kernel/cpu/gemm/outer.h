// beta * self + alpha * column * row, elementwise with broadcasting: the kernel of addr.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// With beta 0 self's values do not matter, NaN included. 16-bit floats round after every step, as PyTorch's kernel does.
void add_outer(const TensorBase& self, const TensorBase& column, const TensorBase& row, const Scalar& beta,
               const Scalar& alpha, const TensorBase& out);

}  // namespace calque::kernel
