#include "calque/op/make.h"

#include <algorithm>

namespace calque {
namespace {

Tensor over_memory(void* data, IntList sizes, const std::optional<IntList>& strides, DType dtype, Deleter deleter,
                   bool read_only) {
  std::vector<int64_t> rows(sizes.size(), 1);
  SymInt row = 1;  // arithmetic of SymInts is checked
  for (size_t d = sizes.size(); d-- > 0;) {
    rows[d] = row.as_int();
    row = row * std::max<int64_t>(sizes[d], 1);
  }
  const IntList steps = strides ? *strides : IntList(rows);
  if (steps.size() != sizes.size())
    throw UserError("from_blob: expected as many strides as sizes, found " + std::to_string(steps.size()) +
                    " strides and sizes " + str(sizes));
  SymInt last = 0;  // the last element that is reached
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || steps[d] < 0)
      throw UserError("from_blob: sizes and strides must not be negative, found sizes " + str(sizes) + " and strides " +
                      str(steps));
    empty = empty || sizes[d] == 0;
    if (sizes[d] > 0) last = last + (SymInt(sizes[d]) - 1) * steps[d];
  }
  const int64_t bytes = empty ? 0 : ((last + 1) * static_cast<int64_t>(item_size(dtype))).as_int();
  if (!data && bytes > 0)
    throw UserError("from_blob: the pointer is null, expected memory of " + std::to_string(bytes) + " bytes");
  const std::shared_ptr<const void> owner(data, [deleter = std::move(deleter)](void* memory) {
    if (memory && deleter) deleter(memory);
  });
  return from_storage(Storage::borrow(data, static_cast<size_t>(bytes), owner, read_only), dtype, sizes, steps, 0);
}

}  // namespace

Tensor from_blob(void* data, NumberList<int64_t> sizes, DType dtype, Deleter deleter) {
  return over_memory(data, sizes, std::nullopt, dtype, std::move(deleter), false);
}
Tensor from_blob(void* data, NumberList<int64_t> sizes, NumberList<int64_t> strides, DType dtype, Deleter deleter) {
  return over_memory(data, sizes, IntList(strides), dtype, std::move(deleter), false);
}
Tensor from_blob(const void* data, NumberList<int64_t> sizes, DType dtype, Deleter deleter) {
  return over_memory(const_cast<void*>(data), sizes, std::nullopt, dtype, std::move(deleter), true);
}

}  // namespace calque
