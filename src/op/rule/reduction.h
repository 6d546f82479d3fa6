// Shape rules of reductions: which dimensions, what remains. Results are contiguous, as PyTorch's.
#pragma once

#include <optional>

#include "calque/op/tensor.h"

namespace calque::rule {

// The dimensions as bits; 0-d tensors accept 0 and -1. Duplicates and out-of-range ones are UserErrors.
uint64_t dim_bits(const char* op, IntList dims, int64_t ndim);
uint64_t all_dims(int64_t ndim);
// None and, for most operators, an empty list mean all dimensions.
inline uint64_t dims_or_all(const char* op, const std::optional<IntList>& dims, int64_t ndim) {
  return dims && !dims->empty() ? dim_bits(op, *dims, ndim) : all_dims(ndim);
}
inline uint64_t dim_or_all(const char* op, const std::optional<int64_t>& dim, int64_t ndim) {
  return dim ? dim_bits(op, {*dim}, ndim) : all_dims(ndim);
}

Meta contiguous_like(const Tensor& self, DType dtype);
Meta reduction(const Tensor& self, uint64_t dims, bool keepdim, DType dtype);

// Operators without a neutral element: every reduced dimension needs a size.
void check_non_empty(const char* op, const Tensor& self, uint64_t dims, bool dims_given);
// The dimension of scans and softmax.
int64_t one_dim(const char* op, int64_t dim, const Tensor& self);

// "\"max_all\" not implemented for 'UInt16'": for kernels of operators that take `bool`, 8- to 64-bit integers and floats.
enum class Kinds { floats, reals, reals_and_bool };
void check_kinds(const char* kernel_name, DType dtype, Kinds kinds);

}  // namespace calque::rule
