// The shape rule of cat, which stack, roll and kin share.
#pragma once

#include "calque/op/tensor.h"

namespace calque::rule {

Meta cat(const char* op, TensorList tensors, int64_t dim);
// `dim` wrapped by the first tensor that is not a one-dimensional empty one; unchanged when all are.
int64_t cat_dim(const char* op, TensorList tensors, int64_t dim);

}  // namespace calque::rule
