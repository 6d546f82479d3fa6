// What pooling operators have in common: argument lists of one or n numbers, output sizes, checks.
#pragma once

#include "calque/op/tensor.h"
#include "kernel/cpu/pooling/pooling.h"

namespace calque::rule {

// kernel_size, stride (empty: as kernel_size), padding and dilation, each one number or `spatial` of them.
kernel::PoolWindow pool_window(const char* op, int spatial, IntList kernel_size, IntList stride, IntList padding,
                               IntList dilation);

// Batch and channels of input, then the pooled sizes.
SymInts pooled_sizes(const char* op, const Tensor& input, const kernel::PoolWindow& window, bool ceil_mode);

// An input with `spatial` + 1 or + 2 dimensions, none of them empty but the batch's.
void check_pool_input(const char* op, const Tensor& input, int spatial);

// As `sizes` of input's dtype; channels last where that is `allowed` and the batched input lies so.
Meta pooled(const Tensor& input, SymInts sizes, int spatial, bool channels_last_allowed);

enum class PoolDTypes { reals, floats_and_int64, floats, wide_floats_and_int64 };
void check_pool_dtype(const char* op, DType dtype, PoolDTypes kinds);

}  // namespace calque::rule
