// Looking values up in sorted or plain lists: searchsorted, bucketize, isin, bincount.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// For each element of `values`, where it would go into its line of `boundaries` (the one line, or the line at the same
// leading coordinates): before equal elements, or after them when `right`. Compared as `common`. `sorter`, when defined,
// orders each line. out is contiguous, int64 or int32.
void searchsorted(const TensorBase& boundaries, const TensorBase& values, const TensorBase& sorter, bool right, DType common,
                  const TensorBase& out);
// out (contiguous bool) = whether each element equals one of test_elements, or none of them when `invert`.
void isin(const TensorBase& elements, const TensorBase& test_elements, DType common, bool invert, const TensorBase& out);
// The smallest and largest of a non-empty integer tensor.
struct IntegerRange {
  int64_t lowest, highest;
};
IntegerRange integer_range(const TensorBase& t);
// out[self[i]] += weights[i], or += 1 without weights; out is int64, float32 or float64, contiguous.
void bincount(const TensorBase& self, const TensorBase& weights, const TensorBase& out);

}  // namespace calque::kernel
