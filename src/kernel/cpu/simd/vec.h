// Vectors of the widest registers of the instruction set being compiled for, for *.simd.cpp files only. Everything is in
// an unnamed namespace and forced inline, so that no code built for one machine can be linked in for another.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "calque/base/half.h"

#if defined(__F16C__) || defined(__AVX512F__)
// GCC 12 warns about its own deliberately undefined operands.
#pragma GCC diagnostic push
#if !defined(__clang__)  // which has no such warning
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace calque {
namespace {

#define CALQUE_INLINE [[gnu::always_inline]] inline

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vec = typename VecOf<T>::type;
typedef uint16_t VecU16Half __attribute__((vector_size(vector_bytes / 2)));

template <class T>
CALQUE_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// GCC likes to load a vector again for every instruction that uses it; this one is loaded once.
template <class V>
CALQUE_INLINE void keep_in_register(V& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#else
  asm("" : "+w"(v));
#endif
}

template <class T>
CALQUE_INLINE void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}

template <class T>
CALQUE_INLINE Vec<T> splat(T x) {
  return x - Vec<T>{};
}

/// a * b + c, rounded once where the machine can.
CALQUE_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
CALQUE_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

CALQUE_INLINE float widen(float x) { return x; }
CALQUE_INLINE double widen(double x) { return x; }
CALQUE_INLINE float widen(BFloat16 x) {
  const uint32_t u = static_cast<uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}
CALQUE_INLINE float widen(Half x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.bits);
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  const uint32_t magnitude = x.bits & 0x7fffU;
  uint32_t out;
  if (magnitude >= 0x7c00U) {
    out = 0x7f800000U | (magnitude & 0x3ffU) << 13;
  } else if (magnitude >= 0x400U) {
    out = (magnitude << 13) + 0x38000000U;
  } else {
    const float f = static_cast<float>(magnitude) * 0x1p-24F;
    std::memcpy(&out, &f, sizeof out);
  }
  out |= sign;
  float f;
  std::memcpy(&f, &out, sizeof f);
  return f;
#endif
}

/// Rounds to nearest even; NaN stays NaN.
template <class S>
CALQUE_INLINE S narrow(float x);
template <>
CALQUE_INLINE float narrow<float>(float x) {
  return x;
}
template <>
CALQUE_INLINE BFloat16 narrow<BFloat16>(float x) {
  uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  BFloat16 r;
  r.bits = static_cast<uint16_t>((u & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : (u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
  return r;
}
template <>
CALQUE_INLINE Half narrow<Half>(float x) {
  Half r;
#if defined(__F16C__)
  r.bits = _cvtss_sh(x, 0);
#else
  uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  const uint32_t sign = (u >> 16) & 0x8000U;
  const uint32_t magnitude = u & 0x7fffffffU;
  uint32_t out;
  if (magnitude > 0x7f800000U) {
    out = 0x7e00U;
  } else if (magnitude >= 0x47800000U) {
    out = 0x7c00U;
  } else if (magnitude < 0x38800000U) {
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5F;
    std::memcpy(&out, &shifted, sizeof out);
    out -= 0x3f000000U;
  } else {
    out = (magnitude + 0xc8000fffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  r.bits = static_cast<uint16_t>(sign | out);
#endif
  return r;
}

/// lanes<float> 16-bit numbers as floats.
CALQUE_INLINE Vec<float> load_wide(const float* p) { return load(p); }
CALQUE_INLINE Vec<double> load_wide(const double* p) { return load(p); }
CALQUE_INLINE Vec<int64_t> load_wide(const int64_t* p) { return load(p); }
CALQUE_INLINE Vec<float> load_wide(const BFloat16* p) {
  VecU16Half h;
  std::memcpy(&h, p, sizeof h);
  const Vec<uint32_t> u = __builtin_convertvector(h, Vec<uint32_t>) << 16;
  return reinterpret_cast<Vec<float>>(u);
}
/// Twice as many numbers, those at even places and those at odd ones: cheaper than two vectors in order.
CALQUE_INLINE void load_pairs(const BFloat16* p, Vec<float>& even, Vec<float>& odd) {
  Vec<uint32_t> u;
  std::memcpy(&u, p, sizeof u);
  even = reinterpret_cast<Vec<float>>(u << 16);
  odd = reinterpret_cast<Vec<float>>(u & 0xffff0000U);
}
CALQUE_INLINE Vec<float> load_wide(const Half* p) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  Vec<float> v{};
  for (int i = 0; i < lanes<float>; ++i) v[i] = widen(p[i]);
  return v;
#endif
}

CALQUE_INLINE void store_narrow(float* p, Vec<float> v) { store(p, v); }
CALQUE_INLINE void store_narrow(double* p, Vec<double> v) { store(p, v); }
CALQUE_INLINE void store_narrow(BFloat16* p, Vec<float> v) {
  const Vec<uint32_t> u = reinterpret_cast<Vec<uint32_t>>(v);
  const Vec<uint32_t> rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
  const Vec<uint32_t> nan = splat<uint32_t>(0x7fc0U);
  const Vec<uint32_t> bits = (u & 0x7fffffffU) > 0x7f800000U ? nan : rounded;
  const VecU16Half h = __builtin_convertvector(bits, VecU16Half);
  std::memcpy(&p->bits, &h, sizeof h);
}
CALQUE_INLINE void store_narrow(Half* p, Vec<float> v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < lanes<float>; ++i) p[i] = narrow<Half>(v[i]);
#endif
}

// What S computes in: itself, or float for the 16-bit floats.
template <class S>
using Wide = std::conditional_t<std::is_same_v<S, BFloat16> || std::is_same_v<S, Half>, float, S>;

// The first n lanes (fewer than all); the others are zero.
template <class S>
CALQUE_INLINE Vec<Wide<S>> load_wide_tail(const S* p, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float>) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), p);
  if constexpr (std::is_same_v<S, double>) return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << n) - 1), p);
#endif
  S padded[lanes<Wide<S>>];
  std::memset(static_cast<void*>(padded), 0, sizeof padded);
  std::memcpy(static_cast<void*>(padded), p, static_cast<size_t>(n) * sizeof(S));
  return load_wide(static_cast<const S*>(padded));
}
template <class S>
CALQUE_INLINE void store_narrow_tail(S* p, Vec<Wide<S>> v, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<S, float>) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1), v);
    return;
  }
  if constexpr (std::is_same_v<S, double>) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1U << n) - 1), v);
    return;
  }
#endif
  S padded[lanes<Wide<S>>];
  store_narrow(static_cast<S*>(padded), v);
  std::memcpy(static_cast<void*>(p), padded, static_cast<size_t>(n) * sizeof(S));
}

/// Sum of the lanes, in halves.
template <class T>
CALQUE_INLINE T sum_lanes(Vec<T> v) {
  T parts[lanes<T>];
  std::memcpy(parts, &v, sizeof v);
#pragma GCC unroll 8
  for (int width = lanes<T> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) parts[i] += parts[i + width];
  return parts[0];
}

/// The halves (the lower or the upper ones) of each stretch of 2 * Half lanes: those of a, then those of b.
template <int Half, bool low, class V>
CALQUE_INLINE V halves(V a, V b) {
  constexpr int count = static_cast<int>(sizeof(V) / sizeof(a[0]));
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, (I / Half * 2 * Half + I % Half + (low ? 0 : Half))...);
  }
  (std::make_integer_sequence<int, count>{});
}

/// out[i] = sum_lanes(v[i]) with the same order of additions, but the lanes of several vectors are added at once: in each step
/// two vectors of stretches of lanes, one stretch a sum, become one of stretches of half the length.
template <int N, int Half, class T>
CALQUE_INLINE void sum_each(const Vec<T>* v, T* out) {
  constexpr int count = (N * Half * 2 + lanes<T> - 1) / lanes<T>, after = (count + 1) / 2;
  Vec<T> next[after];
#pragma GCC unroll 8
  for (int i = 0; i < after; ++i) {
    const Vec<T> a = v[2 * i], b = v[2 * i + 1 < count ? 2 * i + 1 : 2 * i];
    next[i] = halves<Half, true>(a, b) + halves<Half, false>(a, b);
  }
  if constexpr (Half > 1)
    sum_each<N, Half / 2>(next, out);
  else
    std::memcpy(out, next, N * sizeof(T));
}

/// Lanes of a and b alternating: the lower halves (low) or the upper halves.
template <bool low>
CALQUE_INLINE Vec<float> interleave(Vec<float> a, Vec<float> b) {
#if defined(__AVX512F__)
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  else
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  else
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  else
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}
template <bool low>
CALQUE_INLINE Vec<double> interleave(Vec<double> a, Vec<double> b) {
#if defined(__AVX512F__)
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  else
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  else
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
  if constexpr (low)
    return __builtin_shufflevector(a, b, 0, 2);
  else
    return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/// Transposes the square of lanes x lanes numbers in v: each round of interleaving the two halves moves one bit of the
/// row number into the lane number.
template <class T>
CALQUE_INLINE void transpose(Vec<T> (&v)[lanes<T>]) {
  constexpr int n = lanes<T>;
#pragma GCC unroll 8
  for (int round = 1; round < n; round *= 2) {
    Vec<T> w[n];
#pragma GCC unroll 32
    for (int i = 0; i < n / 2; ++i) {
      w[2 * i] = interleave<true>(v[i], v[i + n / 2]);
      w[2 * i + 1] = interleave<false>(v[i], v[i + n / 2]);
    }
#pragma GCC unroll 32
    for (int i = 0; i < n; ++i) v[i] = w[i];
  }
}

/// The sum of each of the vectors, in the lane of its number.
template <class T>
CALQUE_INLINE Vec<T> sum_each(Vec<T> (&v)[lanes<T>]) {
#pragma GCC unroll 8
  for (int n = lanes<T> / 2; n > 0; n /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = interleave<true>(v[i], v[i + n]) + interleave<false>(v[i], v[i + n]);
  return v[0];
}

}  // namespace
}  // namespace calque
