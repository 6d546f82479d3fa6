// What a kernel asks of its arguments before it reads them. A shape rule decides the result's sizes and asks no more of symbolic
// sizes than PyTorch does; whatever else a kernel relies on (the sizes of its other arguments, indices that are data) it
// states here, beside itself, and is refused with a UserError.
#pragma once

#include <algorithm>
#include <string>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

[[noreturn]] void refuse_sizes(const char* op, const char* argument, const TensorBase& found, const std::string& expected);
[[noreturn]] void refuse_index(const char* op, const char* argument, int64_t found, int64_t size);
[[noreturn]] void refuse_dtype(const char* op, const char* argument, const TensorBase& found, DType expected);

// The argument is there and has just these sizes.
inline void require_sizes(const char* op, const char* argument, const TensorBase& t, IntList sizes) {
  if (!t.defined() || t.sizes().size() != sizes.size() || !std::equal(sizes.begin(), sizes.end(), t.sizes().begin()))
      [[unlikely]]
    refuse_sizes(op, argument, t, "sizes " + str(sizes));
}
// The argument can be stretched to these sizes. One that does not fit would be read beyond its end.
inline void require_broadcast(const char* op, const char* argument, const TensorBase& t, IntList sizes) {
  const IntList own = t.sizes();
  bool fits = own.size() <= sizes.size();
  for (size_t d = 0; fits && d < own.size(); ++d) fits = own[d] == 1 || own[d] == sizes[sizes.size() - own.size() + d];
  if (!fits) [[unlikely]]
    refuse_sizes(op, argument, t, "sizes that broadcast to " + str(sizes));
}
// An argument that may be missing.
inline void require_sizes_if(const char* op, const char* argument, const TensorBase& t, IntList sizes) {
  if (t.defined()) require_sizes(op, argument, t, sizes);
}
inline void require_numel(const char* op, const char* argument, const TensorBase& t, int64_t count) {
  if (!t.defined() || t.numel() != count) [[unlikely]]
    refuse_sizes(op, argument, t, std::to_string(count) + " elements");
}
inline void require_dim(const char* op, const char* argument, const TensorBase& t, int64_t dim) {
  if (!t.defined() || t.dim() != dim) [[unlikely]]
    refuse_sizes(op, argument, t, std::to_string(dim) + " dimensions");
}
inline void require_dtype(const char* op, const char* argument, const TensorBase& t, DType dtype) {
  if (t.dtype() != dtype) [[unlikely]]
    refuse_dtype(op, argument, t, dtype);
}
// An index that is data: 0 <= index < size.
inline int64_t require_index(const char* op, const char* argument, int64_t index, int64_t size) {
  if (index < 0 || index >= size) [[unlikely]]
    refuse_index(op, argument, index, size);
  return index;
}

}  // namespace calque::kernel
