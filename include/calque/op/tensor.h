// Tensor: a TensorBase with the operators as methods. x.add(y) and add(x, y) (calque/op/ops.h) are the same call; the
// methods are derived from the stanzas in src/op/aten (tensor_methods.inc) and defined with them.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <source_location>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/tensor/optional_list.h"
#include "calque/tensor/tensor_base.h"

namespace calque {

class Generator;
class Index;
class Tensor;
using TensorList = ListRef<Tensor>;
using BoolMask = std::array<bool, 3>;  // "bool[3]": which results are wanted

// The tensor that a call writes its result into: relu(x, out(y)) leaves relu of x in y.
class Out {
 public:
  explicit Out(const Tensor& tensor) : tensor_(tensor) {}
  const Tensor& tensor() const { return tensor_; }

 private:
  const Tensor& tensor_;
};
inline Out out(const Tensor& tensor) { return Out(tensor); }

class Tensor : public TensorBase {
 public:
  using TensorBase::TensorBase;
  Tensor() = default;
  Tensor(TensorBase base) : TensorBase(std::move(base)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // x[0] = y writes into x, as in Python: what has no name of its own is not a variable that could be given another tensor.
  void operator=(const Tensor& value) &&;
  void operator=(const Scalar& value) &&;

  const Tensor& set_requires_grad(bool value = true) const {  // UserError for integer dtypes and non-leaves
    TensorBase::set_requires_grad(value);
    return *this;
  }

  // Indexing: slices, integers, tensors, None, ellipsis, booleans (calque/op/index.h). x[{i, j}], x.index({i, j}) and
  // x.index_by({i, j}) are Python's x[i, j]; index_put_ and set_by write there.
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const { return index_by(indices); }
  Tensor index(std::initializer_list<Index> indices) const { return index_by(indices); }
  Tensor index_by(std::initializer_list<Index> indices) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Tensor& value) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Scalar& value) const;
  void set_by(std::initializer_list<Index> indices, const Tensor& value) const;

  // The one element, converted; UserError unless numel() == 1.
  template <class T>
  T item_as() const;
  template <class T>
  T item() const {
    return item_as<T>();
  }
  // The first element, to write or, as data_ptr<const float>(), to read. UserError for another dtype, and for writing into a mapped file.
  template <class T>
  T* data_ptr() const {
    if constexpr (std::is_const_v<T>)
      return data_as<std::remove_const_t<T>>();
    else
      return mutable_data_as<T>();
  }
  Tensor to(Device device, std::source_location where = std::source_location::current()) const;

#include "calque/op/tensor_methods.inc"
};

// The first argument of a typed call: remembers the line that made the call, for the nodes of a trace.
class TensorArg {
 public:
  TensorArg(const Tensor& t, std::source_location where = std::source_location::current()) : tensor_(t), where_(where) {}
  operator const Tensor&() const { return tensor_; }
  const Tensor& get() const { return tensor_; }
  const std::source_location& where() const { return where_; }

 private:
  const Tensor& tensor_;
  std::source_location where_;
};

// A tensor of these values: tensor_of<float>({1, 2, 3, 4}, {2, 2}).
template <class T>
Tensor tensor_of(ListRef<T> values, IntList sizes) {
  Tensor t = make_tensor(sizes, dtype_v<T>);
  if (static_cast<size_t>(t.numel()) != values.size()) throw UserError("tensor_of: values do not fill the sizes given");
  T* to = t.template mutable_data_as<T>();
  for (size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  return t;
}

}  // namespace calque
