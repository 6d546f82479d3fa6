// The gradients of what picks elements out, and of what writes some.
#pragma once

#include "calque/op/gradient.h"

namespace calque::gradient {

Tensor of_index(const Gradients& g);                 // index.Tensor: self
Tensor of_indexed_self(const Gradients& g);          // index_put: self
Tensor of_index_select(const Gradients& g);          // self
Tensor of_gather(const Gradients& g);                // self
Tensor of_take(const Gradients& g);                  // self
Tensor of_index_source(const Gradients& g);          // index_add, index_copy: source
TensorVector of_scatter_reduce(const Gradients& g);  // self, src
TensorVector of_index_reduce(const Gradients& g);    // self, source

}  // namespace calque::gradient
