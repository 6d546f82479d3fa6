// Loops over arrays in whole vectors, for *.simd.cpp files. The function sees Vec<T>; a tail is padded, so it never has
// to think of one. Arrays are laid out as ElementFn gives them: outputs first.
#pragma once

#include "kernel/cpu/vec.h"

namespace calque {
namespace {

template <class T>
CALQUE_INLINE Vec<T> load_tail(const T* p, int64_t n) {
  Vec<T> v = {};
  std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(T));
  return v;
}
template <class T>
CALQUE_INLINE void store_tail(T* p, Vec<T> v, int64_t n) {
  std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(T));
}

template <class T, class F>
CALQUE_INLINE void map1(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(out + i, f(load(a + i)));
  if (i < n) store_tail(out + i, f(load_tail(a + i, n - i)), n - i);
}

template <class T, class F>
CALQUE_INLINE void map2(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  const T* b = static_cast<const T*>(arrays[2]);
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(out + i, f(load(a + i), load(b + i)));
  if (i < n) store_tail(out + i, f(load_tail(a + i, n - i), load_tail(b + i, n - i)), n - i);
}

template <class T, class F>
CALQUE_INLINE void map3(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  const T* b = static_cast<const T*>(arrays[2]);
  const T* c = static_cast<const T*>(arrays[3]);
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(out + i, f(load(a + i), load(b + i), load(c + i)));
  if (i < n) store_tail(out + i, f(load_tail(a + i, n - i), load_tail(b + i, n - i), load_tail(c + i, n - i)), n - i);
}

// Element by element, for functions that have no vector form.
template <class T, class F>
CALQUE_INLINE void each1(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}
template <class T, class F>
CALQUE_INLINE void each2(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  const T* b = static_cast<const T*>(arrays[2]);
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

}  // namespace
}  // namespace calque
