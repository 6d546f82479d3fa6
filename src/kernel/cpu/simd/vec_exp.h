// Elementary functions on vectors, for *.simd.cpp files only.
#pragma once

#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

template <class T>
CALQUE_INLINE Vec<T> max(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}

/// The first terms of e^r's series; `rest` is the factor of r^5 and what comes after it.
CALQUE_INLINE Vec<float> exp_series(Vec<float> r, Vec<float> rest) {
  Vec<float> p = fma(rest, r, splat(1.0F / 24));
  p = fma(p, r, splat(1.0F / 6));
  p = fma(p, r, splat(0.5F));
  p = fma(p, r, splat(1.0F));
  return fma(p, r, splat(1.0F));
}
/// e^r to 1 ulp for |r| up to half the logarithm of 2.
CALQUE_INLINE Vec<float> exp_near_zero(Vec<float> r) {
  return exp_series(r, fma(fma(splat(1.0F / 5040), r, splat(1.0F / 720)), r, splat(1.0F / 120)));
}

/// e^x within about 1 ulp; results below the smallest normal number are 0. NaN stays NaN.
CALQUE_INLINE Vec<float> exp(Vec<float> x) {
#if defined(__AVX512F__)
  const __m512 low = _mm512_set1_ps(-87.33654F);
  const __m512 bounded = _mm512_max_ps(low, _mm512_min_ps(_mm512_set1_ps(89.0F), x));
  const __m512 n = _mm512_roundscale_ps(bounded * 0x1.715476p0F, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  Vec<float> r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e400p-1F), bounded);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20F), r);
  const Vec<float> p = exp_near_zero(r);
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), p, n);
#else
  const Vec<float> magic = splat(0x1.8p23F);
  const Vec<float> low = splat(-87.33654F), high = splat(88.72283F);
  const Vec<float> bounded = x < low ? low : (x > high ? high : x);
  const Vec<float> shifted = fma(bounded, splat(0x1.715476p0F), magic);
  const Vec<float> n = shifted - magic;
  Vec<float> r = fma(n, splat(-0x1.62e400p-1F), bounded);
  r = fma(n, splat(-0x1.7f7d1cp-20F), r);
  const Vec<float> p = exp_near_zero(r);
  // 2^n in two factors, since n may be 128.
  const Vec<int32_t> e = reinterpret_cast<Vec<int32_t>>(shifted) - reinterpret_cast<Vec<int32_t>>(magic);
  const Vec<int32_t> half = e >> 1;
  const Vec<float> f1 = reinterpret_cast<Vec<float>>((half + 127) << 23);
  const Vec<float> f2 = reinterpret_cast<Vec<float>>((e - half + 127) << 23);
  const Vec<float> result = p * f1 * f2;
  return x < low ? Vec<float>{} : (x > high ? splat(__builtin_inff()) : result);
#endif
}

CALQUE_INLINE Vec<double> exp(Vec<double> x) {
  const Vec<double> magic = splat(0x1.8p52);
  const Vec<double> low = splat(-708.39), high = splat(709.782712893384);
  const Vec<double> bounded = x < low ? low : (x > high ? high : x);
  const Vec<double> shifted = fma(bounded, splat(0x1.71547652b82fep0), magic);
  const Vec<double> n = shifted - magic;
  Vec<double> r = fma(n, splat(-0x1.62e42fefa3800p-1), bounded);
  r = fma(n, splat(-0x1.ef35793c76730p-45), r);
  Vec<double> p = splat(1.0 / 6227020800);
  constexpr double factorials[] = {479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1};
#pragma GCC unroll 16
  for (const double factorial : factorials) p = fma(p, r, splat(1.0 / factorial));
  const Vec<int64_t> e = reinterpret_cast<Vec<int64_t>>(shifted) - reinterpret_cast<Vec<int64_t>>(magic);
  const Vec<int64_t> half = e >> 1;
  const Vec<double> f1 = reinterpret_cast<Vec<double>>((half + 1023) << 52);
  const Vec<double> f2 = reinterpret_cast<Vec<double>>((e - half + 1023) << 52);
  const Vec<double> result = p * f1 * f2;
  return x < low ? Vec<double>{} : (x > high ? splat(__builtin_inf()) : result);
}

/// e^x in fewer steps, and with the numbers below the smallest normal one: for softmax, where x is at most 0.
CALQUE_INLINE Vec<float> quick_exp(Vec<float> x) {
  using V = Vec<float>;
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23
  const V low = splat(-104.0F);
  const V high = splat(89.0F);
  const V y = x < low ? low : (x > high ? high : x);  // a NaN passes
  const V n = fma(y, splat(1.44269504F), splat(round_to_integer)) - splat(round_to_integer);
  V r = fma(n, splat(-0.693359375F), y);
  r = fma(n, splat(2.12194440e-4F), r);
  V p = splat(1.9875691500e-4F);
  p = fma(p, r, splat(1.3981999507e-3F));
  p = fma(p, r, splat(8.3334519073e-3F));
  p = fma(p, r, splat(4.1665795894e-2F));
  p = fma(p, r, splat(1.6666665459e-1F));
  p = fma(p, r, splat(5.0000001201e-1F));
  const V e = fma(p, r * r, r) + 1.0F;
#if defined(__AVX512F__)
  return _mm512_scalef_ps(e, n);
#else
  // 2^n in two factors, so that both are normal numbers.
  typedef Vec<int32_t> I;
  const I k = __builtin_convertvector(n, I);
  const I half = k >> 1;
  const V a = reinterpret_cast<V>((half + 127) << 23);
  const V b = reinterpret_cast<V>((k - half + 127) << 23);
  return e * a * b;
#endif
}

}  // namespace
}  // namespace calque
