// Constant and regular contents: fill, arange, linspace, logspace, eye.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

void fill(const TensorBase& out, const Scalar& value);  // a value that the dtype cannot hold is a UserError
void arange(const Scalar& start, const Scalar& step, const TensorBase& out);
void linspace(const Scalar& start, const Scalar& end, const TensorBase& out);
void logspace(const Scalar& start, const Scalar& end, double base, const TensorBase& out);
void eye(const TensorBase& out);

}  // namespace calque::kernel
