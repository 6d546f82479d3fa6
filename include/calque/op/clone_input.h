// Copies of a program's inputs on which it runs as on the originals: same strides, same place within a cache line, same
// need of gradients, memory of their own. A tensor whose elements share memory becomes a plain clone; fake tensors and
// what is no tensor are given back as they are.
#pragma once

#include "calque/op/value.h"

namespace calque {

Tensor clone_input(const Tensor& t);
// Every tensor of a tree. A tensor that is there twice stays one tensor.
Value clone_inputs(const Value& inputs);

}  // namespace calque
