#include "calque/op/make.h"

#include <algorithm>

namespace calque {
namespace {

// Sizes by the first item of each depth, then every list is held against them.
void collect_numbers(const NumberTree& tree, size_t depth, const std::vector<int64_t>& sizes, std::vector<Scalar>& out) {
  if (tree.is_list() != (depth < sizes.size()))
    throw UserError("tensor: the lists are not nested alike: at depth " + std::to_string(depth) +
                    " there are both numbers and lists");
  if (!tree.is_list()) {
    out.push_back(tree.number());
    return;
  }
  if (std::ssize(tree.items()) != sizes[depth])
    throw UserError("tensor: the lists at depth " + std::to_string(depth + 1) + " have different lengths: expected " +
                    std::to_string(sizes[depth]) + ", found " + std::to_string(tree.items().size()));
  for (const NumberTree& item : tree.items()) collect_numbers(item, depth + 1, sizes, out);
}

DType dtype_for(const std::vector<Scalar>& numbers) {
  Scalar::Kind widest = Scalar::Kind::boolean;
  for (const Scalar& number : numbers) widest = std::max(widest, number.kind());
  if (numbers.empty() || widest == Scalar::Kind::floating) return Scalar(0.0).dtype();
  if (widest == Scalar::Kind::complex) return Scalar(std::complex<double>()).dtype();
  return widest == Scalar::Kind::boolean ? DType::bool_ : DType::int64;
}

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

Tensor tensor(const NumberTree& numbers, std::optional<DType> dtype) {
  std::vector<int64_t> sizes;
  for (const NumberTree* at = &numbers; at->is_list(); at = &at->items().front()) {
    sizes.push_back(std::ssize(at->items()));
    if (at->items().empty()) break;
  }
  std::vector<Scalar> values;
  collect_numbers(numbers, 0, sizes, values);
  const Tensor made = make_tensor(IntList(sizes), dtype.value_or(dtype_for(values)));
  dispatch(made.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = made.mutable_data_as<T>();
    for (const Scalar& value : values) *to++ = value.to<T>();
  });
  return made;
}

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
