// Running sums, products, log-sum-exps and extremes along one dimension. float32 accumulates in double, 16-bit floats in
// float32, integers wrap in int64.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

enum class Scan : uint8_t { sum, prod, logsumexp };

// Elements are brought to out's dtype first. `out` is of self's sizes, any strides; it may be self.
void scan(Scan fn, const TensorBase& self, int64_t dim, const TensorBase& out);
// The extreme so far (the latest among equals; NaN stays) and its position.
void scan_extreme(bool largest, const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices);

}  // namespace calque::kernel
