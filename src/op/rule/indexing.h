// What the rules of indexing operators share: how a list of index tensors lies over a tensor (masks expanded, index
// tensors brought together), result layouts, and sizes that depend on values.
#pragma once

#include <vector>

#include "calque/op/owner.h"

namespace calque::rule {

// A new size that only running the operator tells; from the environment of one of the tensors. A data-dependent
// UserError when none has one.
SymInt unbacked_size(const char* op, TensorOwner::Unknown what, std::initializer_list<const Tensor*> inputs);
// The same, of something that is not remembered of any one input.
SymInt fresh_size(const char* op, std::initializer_list<const Tensor*> inputs);

// At most as many as the tensor can have elements.
void limit_by_numel(SymInt size, const Tensor& of);

// Index tensors over a tensor: the indexed dimensions made adjacent (moved to the front when they are not), masks
// replaced by the coordinates of their true elements.
struct Indexed {
  Tensor self;
  std::vector<Tensor> tensors;  // one for each dimension from `first` on
  int64_t first = 0;
  SymInts index_sizes;  // to which the tensors broadcast
  SymInts sizes;        // of the selection: [before..., index_sizes..., after...]
};
Indexed lay_indices(const char* op, const Tensor& self, TensorList indices);
// dtypes and number of index tensors; what can be said without looking at values.
void check_indices(const char* op, const Tensor& self, TensorList indices);
// The layout that PyTorch gives the selection.
SymInts selection_strides(const Indexed& x);

// Sizes, dtype, device and, where it is dense, the strides of self: what clone() would allocate.
Meta preserved(const Tensor& self);
Meta contiguous(const Tensor& self);
Meta contiguous(SymIntList sizes, DType dtype, Device device);

// The written tensor shares no element with an input.
void check_no_overlap(const char* op, const Tensor& written, const Tensor& input);
// Are the two sizes known to differ? Records nothing; for what PyTorch's fake execution does not ask.
bool known_different(SymInt a, SymInt b);
// Sizes as plain integers.
SmallVector<int64_t, 6> plain(SymIntList sizes);

}  // namespace calque::rule
