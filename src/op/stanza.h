// What every stanza file (src/op/aten/*.cpp) includes: the door, the rules' vocabulary and the typed operators that
// composite bodies call. A stanza file FILE.cpp defines register_FILE(Library&) and nothing else that is visible.
#pragma once

#include "calque/op/library.h"
#include "calque/op/operators.h"
#include "calque/tensor/promotion.h"
#include "op/rule/pointwise.h"

namespace calque {

// A list as the kernels take it.
inline std::vector<const TensorBase*> pointers(TensorList tensors) {
  std::vector<const TensorBase*> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(&t);
  return out;
}

}  // namespace calque
