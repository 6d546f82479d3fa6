// Copies between tensors of any dtype, strides and broadcastable sizes.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// Writes src, cast to dst's dtype and broadcast to its sizes, into dst. Full overlap is fine, partial is not.
void copy(const Tensor& src, const Tensor& dst);

// The tensor's values, contiguous, as `dtype`; the tensor itself where it is that already.
Tensor contiguous_as(const Tensor& t, DType dtype);

}  // namespace calque::kernel
