// Constant and regular contents: fill, arange, linspace, logspace, eye.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

void fill(const Tensor& out, const Scalar& value);  // a value that the dtype cannot hold is a UserError
void arange(const Scalar& start, const Scalar& step, const Tensor& out);
void linspace(const Scalar& start, const Scalar& end, const Tensor& out);
void logspace(const Scalar& start, const Scalar& end, double base, const Tensor& out);
void eye(const Tensor& out);

}  // namespace calque::kernel
