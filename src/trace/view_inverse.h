// How a value seen through a view is put back into what it is a view of.
#pragma once

#include "calque/op/operator.h"

namespace calque {

// `base` with the elements that op(base, args...)[index] shows replaced by `view`. Calls functional operators only.
Tensor view_inverse(const Operator& op, const Values& args, size_t index, const Tensor& base, const Tensor& view);

}  // namespace calque
