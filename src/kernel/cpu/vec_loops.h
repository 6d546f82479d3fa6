// Loops over arrays in whole vectors, for *.simd.cpp files. The function sees Vec<T>; a tail is padded, so it never has
// to think of one. Arrays are laid out as ElementFn gives them: outputs first.
#pragma once

#include "kernel/cpu/vec.h"

namespace calque {
namespace {

// What S computes in: itself, or float for the 16-bit floats.
template <class S>
struct WideOf {
  using type = S;
};
template <>
struct WideOf<BFloat16> {
  using type = float;
};
template <class S>
using Wide = typename WideOf<S>::type;

template <class S>
CALQUE_INLINE Vec<Wide<S>> load_tail(const S* p, int64_t n) {
  S whole[lanes<Wide<S>>] = {};
  std::memcpy(static_cast<void*>(whole), p, static_cast<size_t>(n) * sizeof(S));
  return load_wide(whole);
}
template <class S>
CALQUE_INLINE void store_tail(S* p, Vec<Wide<S>> v, int64_t n) {
  S whole[lanes<Wide<S>>];
  store_narrow(whole, v);
  std::memcpy(static_cast<void*>(p), whole, static_cast<size_t>(n) * sizeof(S));
}

template <class S, class F>
CALQUE_INLINE void map1(void* const* arrays, int64_t n, F f) {
  constexpr int64_t step = lanes<Wide<S>>;
  S* out = static_cast<S*>(arrays[0]);
  const S* a = static_cast<const S*>(arrays[1]);
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(out + i, f(load_wide(a + i)));
  if (i < n) store_tail(out + i, f(load_tail(a + i, n - i)), n - i);
}

template <class S, class F>
CALQUE_INLINE void map2(void* const* arrays, int64_t n, F f) {
  constexpr int64_t step = lanes<Wide<S>>;
  S* out = static_cast<S*>(arrays[0]);
  const S* a = static_cast<const S*>(arrays[1]);
  const S* b = static_cast<const S*>(arrays[2]);
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(out + i, f(load_wide(a + i), load_wide(b + i)));
  if (i < n) store_tail(out + i, f(load_tail(a + i, n - i), load_tail(b + i, n - i)), n - i);
}

template <class S, class F>
CALQUE_INLINE void map3(void* const* arrays, int64_t n, F f) {
  constexpr int64_t step = lanes<Wide<S>>;
  S* out = static_cast<S*>(arrays[0]);
  const S* a = static_cast<const S*>(arrays[1]);
  const S* b = static_cast<const S*>(arrays[2]);
  const S* c = static_cast<const S*>(arrays[3]);
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(out + i, f(load_wide(a + i), load_wide(b + i), load_wide(c + i)));
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
