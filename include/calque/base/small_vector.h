// A vector of trivially copyable elements whose first N live inside the object, so that sizes and strides of ordinary
// tensors never touch the heap. Same names as std::vector for what it has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace calque {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  template <class It>
    requires(!std::is_integral_v<It>)
  SmallVector(It first, It last) {
    assign(first, last);
  }
  SmallVector(std::span<const T> values) { assign(values.begin(), values.end()); }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  T* insert(const T* where, T value) {
    const size_t at = static_cast<size_t>(where - data_);
    push_back(value);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  T* erase(const T* where) {
    T* at = data_ + (where - data_);
    std::copy(at + 1, end(), at);
    --size_;
    return at;
  }
  template <class It>
  void assign(It first, It last) {
    clear();
    if constexpr (std::contiguous_iterator<It> &&
                  std::is_same_v<std::remove_cv_t<std::remove_reference_t<decltype(*first)>>, T>) {
      const auto n = static_cast<size_t>(last - first);
      reserve(n);
      if (n) std::memmove(data_, std::to_address(first), n * sizeof(T));
      size_ = n;
    } else {
      for (; first != last; ++first) push_back(static_cast<T>(*first));
    }
  }

  operator std::span<const T>() const { return {data_, size_}; }

 private:
  bool is_inline() const { return data_ == inline_data(); }
  T* inline_data() const { return reinterpret_cast<T*>(const_cast<std::byte*>(inline_)); }
  void release() {
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
    size_ = 0;
  }
  void steal(SmallVector& other) {
    if (other.is_inline()) {
      std::memcpy(inline_, other.inline_, sizeof(T) * other.size_);
      size_ = other.size_;
    } else {
      data_ = other.data_;
      size_ = other.size_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_data();
      other.capacity_ = N;
    }
    other.size_ = 0;
  }
  void grow(size_t wanted) {
    const size_t capacity = std::max(wanted, capacity_ * 2);
    T* fresh = std::allocator<T>().allocate(capacity);
    std::copy(begin(), end(), fresh);
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = fresh;
    capacity_ = capacity;
  }

  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

template <class T, size_t N>
bool operator==(const SmallVector<T, N>& a, const SmallVector<T, N>& b)
  requires std::is_integral_v<T>
{
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace calque
