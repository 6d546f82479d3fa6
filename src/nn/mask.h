// Masks of attention: a bool mask becomes -inf where it is True, a floating one stays.
#pragma once

#include "calque/op/tensor.h"

namespace calque::nn_detail {

// Warns when `other` is of another dtype. Undefined stays undefined.
Tensor canonical_mask(const Tensor& mask, const char* mask_name, const Tensor& other, const char* other_name, DType target);

}  // namespace calque::nn_detail
