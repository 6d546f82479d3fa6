// What the reduction loops share, for *.simd.cpp files: tails, masks and lane numbers.
#pragma once

#include <type_traits>

#include "kernel/cpu/simd/vec.h"

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the deliberately undefined operands of its own intrinsics wherever they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace calque {
namespace {

template <class T>
CALQUE_INLINE bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

// The signed integer as wide as T; vectors of it are comparison masks.
template <class T>
using MaskInt = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
using Mask = Vec<MaskInt<T>>;

template <class T>
CALQUE_INLINE Mask<T> lane_numbers() {
  Mask<T> v;
  for (int i = 0; i < lanes<T>; ++i) v[i] = i;
  return v;
}
template <class T>
CALQUE_INLINE Vec<T> keep_first(Vec<T> v, int64_t n, Vec<T> otherwise) {
  return lane_numbers<T>() < splat<MaskInt<T>>(static_cast<MaskInt<T>>(n)) ? v : otherwise;
}

template <class I>
CALQUE_INLINE bool any_lane(I mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)) != 0;
#else
  uint64_t parts[vector_bytes / 8];
  std::memcpy(parts, &mask, sizeof mask);
  uint64_t all = 0;
  for (int i = 0; i < vector_bytes / 8; ++i) all |= parts[i];
  return all != 0;
#endif
}

template <class T>
CALQUE_INLINE Vec<T> absolute(Vec<T> x) {
  using I = MaskInt<T>;
  constexpr I most = sizeof(T) == 4 ? static_cast<I>(0x7fffffff) : static_cast<I>(0x7fffffffffffffff);
  return reinterpret_cast<Vec<T>>(reinterpret_cast<Vec<I>>(x) & splat<I>(most));
}

}  // namespace
}  // namespace calque
