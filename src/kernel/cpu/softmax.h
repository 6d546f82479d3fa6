// softmax and log_softmax over one dimension, and their gradients. Floating dtypes; 16-bit ones compute in float32.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// `out` is contiguous, of self's sizes.
void softmax(const Tensor& self, int64_t dim, bool is_log, const Tensor& out);
// grad_input from the forward result; all of one dtype but `out`.
void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, bool is_log, const Tensor& out);
// log(sum(exp(self))) over the dimensions whose bits are set. Integers are widened to out's dtype first; `out` is contiguous.
void logsumexp(const Tensor& self, uint64_t dims, const Tensor& out);
// Zeroes the slices of `out` (contiguous) along `dim` where `self` is -inf throughout.
void zero_masked_slices(const Tensor& self, int64_t dim, const Tensor& out);

}  // namespace calque::kernel
