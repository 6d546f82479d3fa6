// The few transcendental functions that models spend their time in, written out on Vec<float> so that they inline and
// overlap: exp, the logistic function, tanh, erf and the normal distribution, each within about 1 ulp. Their Vec<double>
// forms are SLEEF's. For *.simd.cpp files only. The polynomials are minimax fits in relative error.
#pragma once

#include "kernel/cpu/vec_math.h"

namespace calque {
namespace {

CALQUE_INLINE Vec<float> v_min(Vec<float> x, float limit) { return x > limit ? splat<float>(limit) : x; }  // NaN stays
CALQUE_INLINE Vec<float> v_max(Vec<float> x, float limit) { return x < limit ? splat<float>(limit) : x; }

// exp(x + tail) for x in [-104, 89] and a tail far below x's precision: range reduction, polynomial, scaling.
CALQUE_INLINE Vec<float> exp_in_range(Vec<float> x, Vec<float> tail) {
  constexpr float to_integer = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec<float> shifted = fma(x, splat(1.44269504F), splat(to_integer));
  const Vec<float> n = shifted - to_integer;
  Vec<float> r = fma(n, splat(-0.693145751953125F), x);
  r = fma(n, splat(-1.42860677e-6F), r) + tail;
  Vec<float> p = fma(splat(0.0013813187833875418F), r, splat(0.008369416929781437F));
  p = fma(p, r, splat(0.04166845604777336F));
  p = fma(p, r, splat(0.16666515171527863F));
  p = fma(p, r, splat(0.4999999403953552F));
  p = fma(p * r, r, r) + 1.0F;
#if defined(__AVX512F__)
  return _mm512_scalef_ps(p, n);
#else
  // In two steps, so that the results below the normal range come out right.
  const Vec<int32_t> k = reinterpret_cast<Vec<int32_t>>(shifted) - 0x4b400000;
  const Vec<int32_t> half = k >> 1;
  const Vec<float> first = reinterpret_cast<Vec<float>>((half + 127) << 23);
  const Vec<float> second = reinterpret_cast<Vec<float>>((k - half + 127) << 23);
  return p * first * second;
#endif
}

CALQUE_INLINE Vec<float> q_exp(Vec<float> x) { return exp_in_range(v_min(v_max(x, -104.0F), 89.0F), Vec<float>{}); }
CALQUE_INLINE Vec<double> q_exp(Vec<double> x) { return v_exp(x); }

// 1 / (1 + exp(-x)), rounded where PyTorch rounds.
template <class T>
CALQUE_INLINE Vec<T> q_sigmoid(Vec<T> x) {
  return T(1) / (T(1) + q_exp(-x));
}

CALQUE_INLINE Vec<float> q_tanh(Vec<float> x) {
  const Vec<float> a = v_fabs(x);
  const Vec<float> s = x * x;
  Vec<float> p = fma(splat(-0.005704989191144705F), s, splat(0.0206390842795372F));
  p = fma(p, s, splat(-0.05373971164226532F));
  p = fma(p, s, splat(0.13331441581249237F));
  p = fma(p, s, splat(-0.3333328068256378F));
  const Vec<float> small = fma(p * s, x, x);
  const Vec<float> e = exp_in_range(v_min(a + a, 40.0F), Vec<float>{});
  const Vec<float> large = 1.0F - 2.0F / (e + 1.0F);
  return a < 0.625F ? small : x < 0.0F ? -large : large;
}
CALQUE_INLINE Vec<double> q_tanh(Vec<double> x) { return v_tanh(x); }

CALQUE_INLINE Vec<float> q_erf(Vec<float> x) {
  const Vec<float> a = v_min(v_fabs(x), 4.0F);
  const Vec<float> s = x * x;
  Vec<float> p = fma(splat(8.38235646369867e-05F), s, splat(-0.0008145587635226548F));
  p = fma(p, s, splat(0.005201284773647785F));
  p = fma(p, s, splat(-0.026859499514102936F));
  p = fma(p, s, splat(0.11283697187900543F));
  p = fma(p, s, splat(-0.37612634897232056F));
  // The leading coefficient in two parts: 2 / sqrt(pi) = 1 + 0.128...
  const Vec<float> small = fma(fma(p, s, splat(0.12837916709F)), x, x);
  Vec<float> q = fma(splat(-2.109555498464033e-05F), a, splat(0.00043446820927783847F));
  q = fma(q, a, splat(-0.004171089269220829F));
  q = fma(q, a, splat(0.025119494646787643F));
  q = fma(q, a, splat(-0.10828018933534622F));
  q = fma(q, a, splat(-0.6333467960357666F));
  q = fma(q, a, splat(-1.1295149326324463F));
  q = fma(q, a, splat(0.00017469354497734457F));
  const Vec<float> large = 1.0F - exp_in_range(q, Vec<float>{});
  return a < 0.92F ? small : x < 0.0F ? -large : large;
}
CALQUE_INLINE Vec<double> q_erf(Vec<double> x) { return v_erf(x); }

// x * Phi(x), Phi the normal distribution. PyTorch writes 0.5 * x * (1 + erf(x / sqrt(2))), which loses its digits for
// negative x; here the tail Phi(-a) = exp(-a^2 / 2) * P(t) / (a + 3), t = (a - 3) / (a + 3), keeps them. Where the sum
// vanishes even in double precision, so does this.
CALQUE_INLINE Vec<float> q_gelu(Vec<float> x) {
  const Vec<float> a = v_min(v_fabs(x), 9.0F);
  const Vec<float> half = a * 0.5F;
  const Vec<float> h = a * half;
  const Vec<float> tail = fma(a, half, -h);
  const Vec<float> r = 1.0F / (a + 3.0F);
  const Vec<float> t = fma(r, splat(-6.0F), splat(1.0F));
  Vec<float> p = fma(splat(-0.00031330142519436777F), t, splat(-0.000983174191787839F));
  p = fma(p, t, splat(0.001068854471668601F));
  p = fma(p, t, splat(0.0069649373181164265F));
  p = fma(p, t, splat(-0.010470322333276272F));
  p = fma(p, t, splat(-0.04726270213723183F));
  p = fma(p, t, splat(0.23001815378665924F));
  p = fma(p, t, splat(-0.509332001209259F));
  p = fma(p, t, splat(0.7290836572647095F));
  Vec<float> q = exp_in_range(-h, -tail) * (p * r);
  q = a > 8.3743889F ? Vec<float>{} : q;
  return x * (x > 0.0F ? 1.0F - q : q);
}
CALQUE_INLINE Vec<double> q_gelu(Vec<double> x) { return x * 0.5 * (1.0 + v_erf(x * 0.70710678118654752440)); }

// The tanh form, 0.5 * x * (1 + tanh(u)) = x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3), with the exponent
// in two parts for the same reason.
CALQUE_INLINE Vec<float> q_gelu_tanh(Vec<float> x) {
  constexpr float b_high = 1.5957691669464111F, b_low = -4.534068054340423e-08F;
  constexpr float k_high = 0.07135481387376785F, k_low = 2.3988324659995897e-09F;
  const Vec<float> c = v_max(v_min(x, 12.0F), -12.0F);
  const Vec<float> s = c * c;
  const Vec<float> s_tail = fma(c, c, -s);
  const Vec<float> product = s * k_high;
  const Vec<float> product_tail = fma(s, splat(k_high), -product) + fma(s, splat(k_low), s_tail * k_high);
  const Vec<float> w = product + b_high;
  const Vec<float> back = w - product;
  const Vec<float> w_tail = (product - (w - back)) + (b_high - back) + (product_tail + b_low);
  const Vec<float> u = -c * w;
  const Vec<float> u_tail = fma(-c, w, -u) - c * w_tail;
  const Vec<float> e = exp_in_range(v_min(v_max(u, -104.0F), 80.0F), u_tail);
  const Vec<float> value = x / (1.0F + e);
  return u > 38.123095F ? x * 0.0F : value;  // 1 + tanh(u) is zero in double precision from here on
}
CALQUE_INLINE Vec<double> q_gelu_tanh(Vec<double> x) {
  constexpr double beta = 0.79788456080286535588;
  const Vec<double> inner = beta * (x + 0.044715 * (x * x * x));
  return 0.5 * x * (1.0 + v_tanh(inner));
}

}  // namespace
}  // namespace calque
