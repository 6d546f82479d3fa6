// What the constructors of layers take: a number or one number for each dimension (PyTorch's int or tuple), and where
// new parameters are made. A Sizes remembers how it was written, since that is how a layer prints it.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "calque/sym/sym_int.h"
#include "calque/tensor/device.h"
#include "calque/tensor/dtype.h"

namespace calque {

class Sizes {
 public:
  template <std::integral T>
  Sizes(T n) : values_{static_cast<int64_t>(n)}, single_(true) {}
  Sizes(std::initializer_list<int64_t> values) : values_(values) {}
  Sizes(std::vector<int64_t> values) : values_(std::move(values)) {}

  bool is_single() const { return single_; }
  const std::vector<int64_t>& values() const { return values_; }
  // One for each of n dimensions; UserError "<what>: expected 2 numbers, found 3".
  std::vector<int64_t> expanded(size_t n, const char* what) const;
  std::string str() const;  // "3", "(3, 3)"

 private:
  std::vector<int64_t> values_;
  bool single_ = false;
};

// Output sizes of adaptive pooling: a dimension may stay as it is (nullopt).
class OptionalSizes {
 public:
  using Size = std::optional<int64_t>;
  template <std::integral T>
  OptionalSizes(T n) : values_{static_cast<int64_t>(n)}, single_(true) {}
  OptionalSizes(std::initializer_list<Size> values) : values_(values) {}
  OptionalSizes(std::vector<Size> values) : values_(std::move(values)) {}

  std::vector<Size> expanded(size_t n, const char* what) const;
  std::string str() const;

 private:
  std::vector<Size> values_;
  bool single_ = false;
};

// dtype and device of a layer's parameters; the defaults are those of empty().
struct Factory {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
};

namespace nn_detail {
std::string tuple_text(const std::vector<int64_t>& values);  // "(3, 3)", "(3,)"
inline SymInts sym(const std::vector<int64_t>& values) { return SymInts(values.begin(), values.end()); }
inline const char* text(bool value) { return value ? "True" : "False"; }
}  // namespace nn_detail

}  // namespace calque
