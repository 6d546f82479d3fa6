// Selection along dimensions by integer index tensors: what index, index_put, index_select, index_add, index_fill,
// index_copy, index_reduce, take and put do to memory. Masks, dtype rules and result shapes are the operators' business.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Index tensors (int64 or int32, broadcast to `sizes`) that stand for the consecutive dimensions
// [first, first + tensors.size()) of a tensor. `op` and `wraps` say how an index outside is refused.
struct Selection {
  const char* op;
  int64_t first;
  ListRef<const TensorBase*> tensors;
  IntList sizes;
  bool wraps = true;  // negative indices count from the end
};

enum class Put : uint8_t { assign, add, multiply, maximum, minimum };

// out[before..., sizes..., after...] = self[before..., selected..., after...]; out of exactly these sizes, any strides.
void select_elements(const TensorBase& self, const Selection& where, const TensorBase& out);
// self[selected] (op)= values, in the order of the indices; values broadcast to [before..., sizes..., after...].
void put_elements(const TensorBase& self, const Selection& where, const TensorBase& values, Put how);
// self[selected] += alpha * values.
void add_elements(const TensorBase& self, const Selection& where, const TensorBase& values, const Scalar& alpha);

// The tensor as one dimension of numel elements, when strides allow a view of it; a contiguous copy otherwise.
TensorBase flattened(const TensorBase& t);
// The tensor as int64, contiguous, broadcast to `sizes`; itself when it is so already.
TensorBase as_index(const TensorBase& index, IntList sizes);
TensorBase as_float32(const TensorBase& t);  // a contiguous copy

}  // namespace calque::kernel
