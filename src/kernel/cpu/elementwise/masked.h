// Where a tensor is true: nonzero, and moving the elements under a mask (masked_select, masked_scatter).
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// The tensor as a contiguous bool one, broadcast to `sizes`; itself when it is that already.
TensorBase as_mask(const TensorBase& t, IntList sizes);
int64_t count_true(const TensorBase& mask);  // a mask from as_mask
// The coordinates of the first true elements, one a row of out ([n, mask.dim()], int64); rows that no element fills get
// `fill_value`.
void nonzero(const TensorBase& mask, const TensorBase& out, int64_t fill_value = -1);
// All coordinates, [count, t.dim()], each column contiguous.
TensorBase nonzero(const TensorBase& t);
// The elements of self under mask, both of the mask's sizes, in order; out is contiguous, [count_true(mask)].
void masked_select(const TensorBase& self, const TensorBase& mask, const TensorBase& out);
// The elements of out under the mask become those of source, in order; out is contiguous, of the mask's sizes.
void masked_scatter(const TensorBase& mask, const TensorBase& source, const TensorBase& out);

}  // namespace calque::kernel
