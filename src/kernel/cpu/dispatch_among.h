// From a dtype to the C++ type of its elements, where a kernel has some types alone.
#pragma once

#include <string>

#include "calque/base/error.h"
#include "calque/tensor/dtype.h"

namespace calque::kernel {

// Calls fn(TypeTag<T>{}) where `d` is the dtype of one of these types; false where it is of none.
template <class... T, class F>
bool dispatch_if_among(DType d, F&& fn) {
  return ((d == dtype_v<T> && (fn(TypeTag<T>{}), true)) || ...);
}

// The same where the shape rule lets no other dtype pass.
template <class... T, class F>
void dispatch_among(DType d, const char* kernel, F&& fn) {
  if (!dispatch_if_among<T...>(d, fn))
    throw InternalError(std::string(kernel) + ": no kernel for dtype " + std::string(name(d)));
}

}  // namespace calque::kernel
