// Looking values up in sorted or plain lists: searchsorted, bucketize, isin, bincount.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// For each element of `values`, where it would go into its line of `boundaries` (the one line, or the line at the same
// leading coordinates): before equal elements, or after them when `right`. Compared as `common`. `sorter`, when defined,
// orders each line. out is contiguous, int64 or int32.
void searchsorted(const Tensor& boundaries, const Tensor& values, const Tensor& sorter, bool right, DType common,
                  const Tensor& out);
// out (contiguous bool) = whether each element equals one of test_elements, or none of them when `invert`.
void isin(const Tensor& elements, const Tensor& test_elements, DType common, bool invert, const Tensor& out);
// The smallest and largest of a non-empty integer tensor.
struct IntegerRange {
  int64_t lowest, highest;
};
IntegerRange integer_range(const Tensor& t);
// out[self[i]] += weights[i], or += 1 without weights; out is int64, float32 or float64, contiguous.
void bincount(const Tensor& self, const Tensor& weights, const Tensor& out);

}  // namespace calque::kernel
