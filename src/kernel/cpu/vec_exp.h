// exp of float vectors, inlined: about 1 ulp, infinities and NaN right, results below the smallest normal number included.
// For *.simd.cpp files whose loops are too short or too hot for a call into the vector library.
#pragma once

#include "kernel/cpu/vec.h"

namespace calque {
namespace {

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
