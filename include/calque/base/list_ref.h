// A borrowed list argument: a pointer and a length, made from an initializer list, a vector or a span. It must not
// outlive what it was made from; functions take it by value and keep nothing of it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "calque/base/small_vector.h"

namespace calque {

template <class T>
class ListRef {
 public:
  constexpr ListRef() = default;
  constexpr ListRef(const T* data, size_t size) : data_(data), size_(size) {}
  ListRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  ListRef(const SmallVector<T, N>& values) : data_(values.data()), size_(values.size()) {}
  constexpr ListRef(std::span<const T> values) : data_(values.data()), size_(values.size()) {}
// The list lives until the end of the full expression that made it, which is all that a call needs.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ListRef(const std::initializer_list<T>& values) : data_(values.begin()), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }  // a copy, to keep

  friend constexpr bool operator==(ListRef a, ListRef b)
    requires requires(const T& x) {
      { x == x } -> std::same_as<bool>;
    }
  {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace calque
