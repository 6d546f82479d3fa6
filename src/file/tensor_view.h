// A tensor over a file's bytes, with sizes, strides and an offset as the file states them: nothing about them is
// believed. Private to the readers of files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/op/tensor.h"

namespace calque {

// UserError (bad_file) starting with `what` when the tensor does not lie in the storage, or its sizes overflow.
inline Tensor checked_view(const Ref<Storage>& storage, DType dtype, const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& strides, int64_t offset, const std::string& what) {
  const auto fail = [&](const std::string& why) { throw UserError(ErrorKind::bad_file, what + ": " + why); };
  if (sizes.size() != strides.size())
    fail(std::to_string(sizes.size()) + " sizes but " + std::to_string(strides.size()) + " strides");
  if (offset < 0) fail("the offset " + std::to_string(offset) + " is negative");
  int64_t numel = 1;
  int64_t last = offset;  // the furthest element
  bool overflow = false;
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach = 0;
    if (sizes[d] < 0 || strides[d] < 0)
      fail("a negative size or stride in " + str(IntList(sizes)) + ", " + str(IntList(strides)));
    empty |= sizes[d] == 0;
    overflow |= __builtin_mul_overflow(numel, sizes[d], &numel) ||
                __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  const auto available = static_cast<int64_t>(storage->nbytes() / item_size(dtype));
  if (overflow && !empty) fail("its sizes " + str(IntList(sizes)) + " and strides " + str(IntList(strides)) + " overflow");
  if (!empty && last >= available)
    fail("sizes " + str(IntList(sizes)) + ", strides " + str(IntList(strides)) + " and offset " + std::to_string(offset) +
         " reach element " + std::to_string(last) + ", the storage has " + std::to_string(available));
  return from_storage(storage, dtype, sizes, strides, empty ? 0 : offset);
}

}  // namespace calque
