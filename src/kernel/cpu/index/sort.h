// Order along a dimension: sort, topk, kthvalue. NaN is the largest value. Outputs are of any strides; `indices` is int64.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// `values` has self's sizes. Without `stable`, equal elements come in the order in which std::sort leaves them: PyTorch's.
void sort(const TensorBase& self, int64_t dim, bool descending, bool stable, const TensorBase& values,
          const TensorBase& indices);
// The k largest or smallest, best first when `sorted`. Which of equal elements are taken, and in which order they and
// unsorted results come, follows the heap and selection algorithms of the C++ library, as PyTorch's results do.
void topk(const TensorBase& self, int64_t k, int64_t dim, bool largest, bool sorted, const TensorBase& values,
          const TensorBase& indices);
// The k-th smallest (from 1); the outputs have size 1 along dim.
void kthvalue(const TensorBase& self, int64_t k, int64_t dim, const TensorBase& values, const TensorBase& indices);
// A dtype that has an order here; UserError naming the operator otherwise.
void check_sortable(const char* op, DType d);

}  // namespace calque::kernel
