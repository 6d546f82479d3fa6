// Order statistics along one dimension: median and mode.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// The lower median; a NaN is the median unless ignored. `values` and `indices` are of self's sizes without `dim` (or with 1).
void median(const Tensor& self, int64_t dim, bool keepdim, bool ignore_nan, const Tensor& values, const Tensor& indices);
void median_all(const Tensor& self, bool ignore_nan, const Tensor& out);
// The most frequent value (the smallest among equals) and an index where it occurs.
void mode(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values, const Tensor& indices);

}  // namespace calque::kernel
