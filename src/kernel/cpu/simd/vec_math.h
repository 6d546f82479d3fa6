// Vector mathematics for *.simd.cpp files: SLEEF's functions on Vec<float> and Vec<double> under plain names, accurate
// to 1 ulp (sin and cos included), and the few that are simple enough to write out.
#pragma once

#include <sleef.h>

#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

#if defined(__AVX512F__)
#define CALQUE_SLEEF_F(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define CALQUE_SLEEF_D(name, ulp) Sleef_##name##d8_##ulp##avx512f
#elif defined(__AVX2__)
#define CALQUE_SLEEF_F(name, ulp) Sleef_##name##f8_##ulp##avx2
#define CALQUE_SLEEF_D(name, ulp) Sleef_##name##d4_##ulp##avx2
#elif defined(__SSE2__)
#define CALQUE_SLEEF_F(name, ulp) Sleef_##name##f4_##ulp##sse2
#define CALQUE_SLEEF_D(name, ulp) Sleef_##name##d2_##ulp##sse2
#else
#define CALQUE_SLEEF_F(name, ulp) Sleef_##name##f4_##ulp##advsimd
#define CALQUE_SLEEF_D(name, ulp) Sleef_##name##d2_##ulp##advsimd
#endif

// One list: Calque's name, SLEEF's name, its accuracy suffix.
// clang-format off
#define CALQUE_VECTOR_MATH(X)                                                                                     \
  X(v_exp, exp, u10) X(v_exp2, exp2, u10) X(v_expm1, expm1, u10) X(v_log, log, u10) X(v_log2, log2, u10)          \
  X(v_log10, log10, u10) X(v_log1p, log1p, u10) X(v_sin, sin, u10) X(v_cos, cos, u10) X(v_tan, tan, u10)          \
  X(v_asin, asin, u10) X(v_acos, acos, u10) X(v_atan, atan, u10) X(v_sinh, sinh, u10) X(v_cosh, cosh, u10)        \
  X(v_tanh, tanh, u10) X(v_asinh, asinh, u10) X(v_acosh, acosh, u10) X(v_atanh, atanh, u10) X(v_erf, erf, u10)    \
  X(v_erfc, erfc, u15) X(v_lgamma, lgamma, u10) X(v_tgamma, tgamma, u10)
// clang-format on
#define X(own, sleef, ulp)                                                                         \
  CALQUE_INLINE Vec<float> own(Vec<float> x) { return (Vec<float>)CALQUE_SLEEF_F(sleef, ulp)(x); } \
  CALQUE_INLINE Vec<double> own(Vec<double> x) { return (Vec<double>)CALQUE_SLEEF_D(sleef, ulp)(x); }
CALQUE_VECTOR_MATH(X)
#undef X
#define CALQUE_VECTOR_MATH2(X) X(v_pow, pow, u10) X(v_atan2, atan2, u10) X(v_hypot, hypot, u05)
#define X(own, sleef, ulp)                                                                                          \
  CALQUE_INLINE Vec<float> own(Vec<float> x, Vec<float> y) { return (Vec<float>)CALQUE_SLEEF_F(sleef, ulp)(x, y); } \
  CALQUE_INLINE Vec<double> own(Vec<double> x, Vec<double> y) { return (Vec<double>)CALQUE_SLEEF_D(sleef, ulp)(x, y); }
CALQUE_VECTOR_MATH2(X)
#undef X

#define X(own, sleef)                                                                               \
  CALQUE_INLINE Vec<float> own(Vec<float> x) { return (Vec<float>)CALQUE_SLEEF_PLAIN_F(sleef)(x); } \
  CALQUE_INLINE Vec<double> own(Vec<double> x) { return (Vec<double>)CALQUE_SLEEF_PLAIN_D(sleef)(x); }
#if defined(__AVX512F__)
#define CALQUE_SLEEF_PLAIN_F(name) Sleef_##name##f16_avx512f
#define CALQUE_SLEEF_PLAIN_D(name) Sleef_##name##d8_avx512f
#elif defined(__AVX2__)
#define CALQUE_SLEEF_PLAIN_F(name) Sleef_##name##f8_avx2
#define CALQUE_SLEEF_PLAIN_D(name) Sleef_##name##d4_avx2
#elif defined(__SSE2__)
#define CALQUE_SLEEF_PLAIN_F(name) Sleef_##name##f4_sse2
#define CALQUE_SLEEF_PLAIN_D(name) Sleef_##name##d2_sse2
#else
#define CALQUE_SLEEF_PLAIN_F(name) Sleef_##name##f4_advsimd
#define CALQUE_SLEEF_PLAIN_D(name) Sleef_##name##d2_advsimd
#endif
// clang-format off
// Single instructions where there are such, so that loops around them stay free of calls.
#if defined(__AVX512F__)
#define CALQUE_ROUND(own, mode)                                                                        \
  CALQUE_INLINE Vec<float> own(Vec<float> x) { return _mm512_roundscale_ps(x, (mode) | 8); }           \
  CALQUE_INLINE Vec<double> own(Vec<double> x) { return _mm512_roundscale_pd(x, (mode) | 8); }
CALQUE_ROUND(v_rint, 0) CALQUE_ROUND(v_floor, 1) CALQUE_ROUND(v_ceil, 2) CALQUE_ROUND(v_trunc, 3)
#elif defined(__AVX2__)
#define CALQUE_ROUND(own, mode)                                                                        \
  CALQUE_INLINE Vec<float> own(Vec<float> x) { return _mm256_round_ps(x, (mode) | 8); }                \
  CALQUE_INLINE Vec<double> own(Vec<double> x) { return _mm256_round_pd(x, (mode) | 8); }
CALQUE_ROUND(v_rint, 0) CALQUE_ROUND(v_floor, 1) CALQUE_ROUND(v_ceil, 2) CALQUE_ROUND(v_trunc, 3)
#else
X(v_floor, floor) X(v_ceil, ceil) X(v_trunc, trunc) X(v_rint, rint)
#endif
// clang-format on
#undef X

    CALQUE_INLINE Vec<float> v_fabs(Vec<float> x) {
  return reinterpret_cast<Vec<float>>(reinterpret_cast<Vec<uint32_t>>(x) & 0x7fffffffU);
}
CALQUE_INLINE Vec<double> v_fabs(Vec<double> x) {
  return reinterpret_cast<Vec<double>>(reinterpret_cast<Vec<uint64_t>>(x) & 0x7fffffffffffffffULL);
}

#if defined(__AVX512F__)
CALQUE_INLINE Vec<float> v_sqrt(Vec<float> x) { return _mm512_sqrt_ps(x); }
CALQUE_INLINE Vec<double> v_sqrt(Vec<double> x) { return _mm512_sqrt_pd(x); }
#elif defined(__AVX2__)
CALQUE_INLINE Vec<float> v_sqrt(Vec<float> x) { return _mm256_sqrt_ps(x); }
CALQUE_INLINE Vec<double> v_sqrt(Vec<double> x) { return _mm256_sqrt_pd(x); }
#else
CALQUE_INLINE Vec<float> v_sqrt(Vec<float> x) {
  Vec<float> r;
  for (int i = 0; i < lanes<float>; ++i) r[i] = __builtin_sqrtf(x[i]);
  return r;
}
CALQUE_INLINE Vec<double> v_sqrt(Vec<double> x) {
  Vec<double> r;
  for (int i = 0; i < lanes<double>; ++i) r[i] = __builtin_sqrt(x[i]);
  return r;
}
#endif

}  // namespace
}  // namespace calque
