// Copies between tensors of any dtype, strides and broadcastable sizes.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Writes src, cast to dst's dtype and broadcast to its sizes, into dst. Full overlap is fine, partial is not.
void copy(const TensorBase& src, const TensorBase& dst);

// The tensor's values, contiguous, as `dtype`; the tensor itself where it is that already.
TensorBase contiguous_as(const TensorBase& t, DType dtype);

}  // namespace calque::kernel
