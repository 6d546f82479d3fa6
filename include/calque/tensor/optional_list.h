// The list parameters of typed fronts. NumberList takes what a ListRef takes and a single number, as PyTorch's parser does:
// x.view(-1), x.sum(1), zeros({2, 3}). OptionalList takes nothing as well.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "calque/base/list_ref.h"

namespace calque {

template <class T>
class NumberList {
 public:
  NumberList() = default;
  NumberList(const std::initializer_list<T>& values) : list_(ListRef<T>(values)) {}
  template <class L>
    requires std::is_convertible_v<const L&, ListRef<T>>
  NumberList(const L& values) : list_(ListRef<T>(values)) {}
  template <class N>
    requires(std::integral<N> && !std::same_as<N, bool>) || std::same_as<N, T>
  NumberList(N number) : number_(number), is_number_(true) {}
  operator ListRef<T>() const { return is_number_ ? ListRef<T>(&number_, 1) : list_; }

 private:
  ListRef<T> list_;
  T number_{};
  bool is_number_ = false;
};

template <class T>
class OptionalList {
 public:
  OptionalList() = default;
  OptionalList(std::nullopt_t) {}
  OptionalList(const std::initializer_list<T>& values) : list_(values) {}
  template <class L>
    requires std::is_convertible_v<const L&, NumberList<T>>
  OptionalList(const L& values) : list_(NumberList<T>(values)) {}
  OptionalList(std::optional<ListRef<T>> values) {
    if (values) list_ = NumberList<T>(*values);
  }
  operator std::optional<ListRef<T>>() const { return list_ ? std::optional<ListRef<T>>(*list_) : std::nullopt; }

 private:
  std::optional<NumberList<T>> list_;
};

}  // namespace calque
