// How a tensor lies in memory, as PyTorch's Python side decides it.
#pragma once

#include <vector>

#include "calque/op/tensor.h"

namespace calque {

// The dimensions from the outermost in memory to the innermost.
std::vector<int64_t> physical_order(const Tensor& t);

}  // namespace calque
