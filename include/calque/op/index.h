// Index: one entry of a tensor subscript, as in Python's x[1:, None, idx, ..., 0].
//
//   x[0]                                        x[0]
//   x[{0, Slice(1, 3)}]                         x[0, 1:3]
//   x.index({Slice(1, none, 2), none, idx})     x[1::2, None, idx]
//   x.index({"...", -1})                        x[..., -1]
//   x.index_put_({0, Slice(0, 2)}, value)       x[0, 0:2] = value
//   x[0] = value                                x[0] = value
//
// A subscript without tensors or booleans gives a view; with them it copies (and set_by writes through index_put_).
// An Index shares the tensor it was made from.
#pragma once

#include <concepts>
#include <optional>
#include <variant>

#include "calque/op/tensor.h"
#include "calque/op/value.h"

namespace calque {

struct Ellipsis {
  bool operator==(const Ellipsis&) const = default;
};
inline constexpr Ellipsis ellipsis{};
inline constexpr None none{};

// start:stop:step, each of which may be `none`.
struct Slice {
  class Bound {
   public:
    Bound(None = {}) {}
    Bound(SymInt value) : value_(value) {}
    template <std::integral T>
      requires(!std::same_as<T, bool>)
    Bound(T value) : value_(SymInt(value)) {}
    const std::optional<SymInt>& value() const { return value_; }

   private:
    std::optional<SymInt> value_;
  };
  Slice(Bound start = none, Bound stop = none, Bound step = none)
      : start(start.value()), stop(stop.value()), step(step.value()) {}
  std::optional<SymInt> start, stop, step;
};

class Index {
 public:
  using Entry = std::variant<None, Ellipsis, bool, SymInt, Slice, Tensor>;

  Index(None) : entry_(None{}) {}
  Index(Ellipsis) : entry_(Ellipsis{}) {}
  Index(const char* dots);  // "..."; UserError for another text
  template <std::same_as<bool> T>
  Index(T value) : entry_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Index(T value) : entry_(SymInt(value)) {}
  Index(SymInt value) : entry_(value) {}
  Index(Slice slice) : entry_(std::move(slice)) {}
  Index(const Tensor& tensor) : entry_(tensor) {}

  const Entry& entry() const { return entry_; }

 private:
  Entry entry_;
};

// x[i, j, ...] and x[i, j, ...] = value for lists made at run time, and for numbers.
Tensor index_by(const Tensor& self, ListRef<Index> indices);
void set_by(const Tensor& self, ListRef<Index> indices, const Tensor& value);
void set_by(const Tensor& self, ListRef<Index> indices, const Scalar& value);

}  // namespace calque
