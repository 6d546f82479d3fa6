// How an argument that an operator writes is found again in a copy of the memory it is a view of: the entries by which
// auto_functionalized_v2 says so, in the order and with the choices of PyTorch's.
#pragma once

#include "calque/op/mode.h"

namespace calque {

// `base` is the whole memory's value, `view` the argument's. The same tensor needs no entries.
void describe_view(Kwargs& entries, const std::string& prefix, const Tensor& base, const Tensor& view);

}  // namespace calque
