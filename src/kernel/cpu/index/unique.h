// Distinct elements and slices, with where each went and how often each occurs. Sizes follow from the values, so these
// allocate their results. NaN differs from everything, itself included.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

struct Unique {
  TensorBase values;
  TensorBase inverse;  // one number for each element (or slice) of the input
  TensorBase counts;
};

// Of all elements, in any shape; `sorted` orders them first, otherwise only neighbours are compared. inverse has self's
// sizes.
Unique unique_elements(const TensorBase& self, bool sorted);
// Of the slices along dim. inverse has one number a slice.
Unique unique_slices(const TensorBase& self, int64_t dim, bool sorted);

}  // namespace calque::kernel
