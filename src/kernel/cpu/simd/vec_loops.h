// Loops over arrays in whole vectors, for *.simd.cpp files. The function sees Vec<T>; a tail is padded, so it never has
// to think of one. Arrays are laid out as ElementFn gives them: outputs first.
#pragma once

#include <type_traits>
#include <utility>

#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

// A register of bfloat16 as two of floats, the elements at even places and those at odd ones, and back: which lane an
// element sits in means nothing to an elementwise function, and this way needs no shuffle.
struct Halves {
  Vec<float> even, odd;
};
CALQUE_INLINE Halves load_halves(const BFloat16* p) {
  Vec<uint32_t> u;
  std::memcpy(&u, p, sizeof u);
  return {reinterpret_cast<Vec<float>>(u << 16), reinterpret_cast<Vec<float>>(u & 0xffff0000U)};
}
CALQUE_INLINE Vec<uint32_t> round_upwards(Vec<float> v) {  // the rounded bfloat16 in the upper half; the lower half is junk
  const Vec<uint32_t> u = reinterpret_cast<Vec<uint32_t>>(v);
  return v == v ? u + 0x7fffU + ((u >> 16) & 1U) : splat<uint32_t>(0x7fc00000U);
}
CALQUE_INLINE void store_halves(BFloat16* p, Halves h) {
  const Vec<uint32_t> u = (round_upwards(h.even) >> 16) | (round_upwards(h.odd) & 0xffff0000U);
  std::memcpy(static_cast<void*>(p), &u, sizeof u);
}

// out[i] = f(in[i]...) for the arrays behind arrays[0], in whole registers.
template <class S, class F, size_t... k>
CALQUE_INLINE void map_arrays(void* const* arrays, int64_t n, F f, std::index_sequence<k...>) {
  constexpr int64_t step = lanes<Wide<S>>;
  S* out = static_cast<S*>(arrays[0]);
  int64_t i = 0;
  if constexpr (std::is_same_v<S, BFloat16>) {
    for (; i + 2 * step <= n; i += 2 * step) {
      const Halves in[] = {load_halves(static_cast<const S*>(arrays[k + 1]) + i)...};
      store_halves(out + i, {f(in[k].even...), f(in[k].odd...)});
    }
  }
  for (; i + step <= n; i += step) store_narrow(out + i, f(load_wide(static_cast<const S*>(arrays[k + 1]) + i)...));
  if (i < n) store_narrow_tail(out + i, f(load_wide_tail(static_cast<const S*>(arrays[k + 1]) + i, n - i)...), n - i);
}
template <class S, class F>
CALQUE_INLINE void map1(void* const* arrays, int64_t n, F f) {
  map_arrays<S>(arrays, n, f, std::make_index_sequence<1>{});
}
template <class S, class F>
CALQUE_INLINE void map2(void* const* arrays, int64_t n, F f) {
  map_arrays<S>(arrays, n, f, std::make_index_sequence<2>{});
}
template <class S, class F>
CALQUE_INLINE void map3(void* const* arrays, int64_t n, F f) {
  map_arrays<S>(arrays, n, f, std::make_index_sequence<3>{});
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
