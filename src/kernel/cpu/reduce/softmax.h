// softmax and log_softmax over one dimension, and their gradients. Floating dtypes; 16-bit ones compute in float32.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// `out` is contiguous, of self's sizes.
void softmax(const TensorBase& self, int64_t dim, bool is_log, const TensorBase& out);
// grad_input from the forward result; all of one dtype but `out`.
void softmax_backward(const TensorBase& grad, const TensorBase& output, int64_t dim, bool is_log, const TensorBase& out);
// log(sum(exp(self))) over the dimensions whose bits are set. Integers are widened to out's dtype first; `out` is contiguous.
void logsumexp(const TensorBase& self, uint64_t dims, const TensorBase& out);
// Zeroes the slices of `out` (contiguous) along `dim` where `self` is -inf throughout.
void zero_masked_slices(const TensorBase& self, int64_t dim, const TensorBase& out);

}  // namespace calque::kernel
