// An optional list parameter of a typed front that accepts {1, 2} as well as a list or nothing.
#pragma once

#include <initializer_list>
#include <optional>

#include "calque/base/list_ref.h"

namespace calque {

template <class T>
class OptionalList {
 public:
  OptionalList() = default;
  OptionalList(std::nullopt_t) {}
  OptionalList(const std::initializer_list<T>& values) : list_(ListRef<T>(values)) {}
  template <class L>
    requires std::is_convertible_v<const L&, ListRef<T>>
  OptionalList(const L& values) : list_(ListRef<T>(values)) {}
  OptionalList(std::optional<ListRef<T>> values) : list_(values) {}
  operator std::optional<ListRef<T>>() const { return list_; }

 private:
  std::optional<ListRef<T>> list_;
};

}  // namespace calque
