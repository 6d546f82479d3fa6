// Unpooling and fractional pooling: planes of values whose places are given, or drawn beforehand.
#pragma once

#include <span>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// out is filled with zeros, then each value of a plane of `self` goes to the place in out's plane that `indices` has for it. self and
// indices are contiguous, `planes` planes; out is [planes, volume], contiguous. An index outside the plane is a UserError.
void max_unpool(const char* op, const TensorBase& self, const TensorBase& indices, int64_t planes, const TensorBase& out);

// Windows of `kernel` start where `samples` (one number in [0, 1) for each plane and dimension, the dimensions in the order `order`
// says) puts them. self [planes, sizes...], samples [planes, dims], out and indices [planes, output...], all contiguous.
void fractional_max_pool(const char* op, const TensorBase& self, const TensorBase& samples, std::span<const int64_t> sizes,
                         std::span<const int64_t> kernel, std::span<const int64_t> output, bool last_dimension_first,
                         int64_t planes, const TensorBase& out, const TensorBase& indices);

}  // namespace calque::kernel
