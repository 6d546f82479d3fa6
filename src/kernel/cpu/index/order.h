// Order statistics along one dimension: median and mode.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// The lower median; a NaN is the median unless ignored. `values` and `indices` are of self's sizes without `dim` (or with 1).
void median(const TensorBase& self, int64_t dim, bool keepdim, bool ignore_nan, const TensorBase& values,
            const TensorBase& indices);
void median_all(const TensorBase& self, bool ignore_nan, const TensorBase& out);
// The most frequent value (the smallest among equals) and an index where it occurs.
void mode(const TensorBase& self, int64_t dim, bool keepdim, const TensorBase& values, const TensorBase& indices);

}  // namespace calque::kernel
