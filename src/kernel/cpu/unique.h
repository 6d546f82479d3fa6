// Distinct elements and slices, with where each went and how often each occurs. Sizes follow from the values, so these
// allocate their results. NaN differs from everything, itself included.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

struct Unique {
  Tensor values;
  Tensor inverse;  // one number for each element (or slice) of the input
  Tensor counts;
};

// Of all elements, in any shape; `sorted` orders them first, otherwise only neighbours are compared. inverse has self's
// sizes.
Unique unique_elements(const Tensor& self, bool sorted);
// Of the slices along dim. inverse has one number a slice.
Unique unique_slices(const Tensor& self, int64_t dim, bool sorted);

}  // namespace calque::kernel
