// Tensors of numbers that a program has: in braces, in a vector, in memory of its own.
//
//   tensor({{1, 2}, {3, 4}})                 op/literal.h
//   tensor(std::vector<double>{1, 2})        of the vector's type
//   from_blob(pointer, {2, 3})               no copy: the memory must outlive the tensor and its views
//   from_blob(pointer, {2, 3}, deleter)      no copy: the deleter is called when nobody uses the memory any more
#pragma once

#include <complex>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/op/literal.h"
#include "calque/op/tensor.h"
#include "calque/tensor/optional_list.h"

namespace calque {

template <class T>
  requires(!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values) {
  return tensor_of<T>(values, {static_cast<int64_t>(values.size())});
}

// A tensor over memory that is there, row-major unless strides are said. `deleter` may be empty.
using Deleter = std::function<void(void*)>;
Tensor from_blob(void* data, NumberList<int64_t> sizes, DType dtype, Deleter deleter = {});
Tensor from_blob(void* data, NumberList<int64_t> sizes, NumberList<int64_t> strides, DType dtype, Deleter deleter = {});
// Memory that must not be written to; in-place operators on the tensor are a UserError.
Tensor from_blob(const void* data, NumberList<int64_t> sizes, DType dtype, Deleter deleter = {});

// The dtype of the pointer.
template <class T>
  requires(!std::is_void_v<T>)
Tensor from_blob(T* data, NumberList<int64_t> sizes, Deleter deleter = {}) {
  return from_blob(static_cast<std::conditional_t<std::is_const_v<T>, const void*, void*>>(data), sizes,
                   dtype_v<std::remove_const_t<T>>, std::move(deleter));
}
template <class T>
  requires(!std::is_const_v<T> && !std::is_void_v<T>)
Tensor from_blob(T* data, NumberList<int64_t> sizes, NumberList<int64_t> strides, Deleter deleter = {}) {
  return from_blob(static_cast<void*>(data), sizes, strides, dtype_v<T>, std::move(deleter));
}

}  // namespace calque
