// The few transcendental functions that models spend their time in, written out on Vec<float> so that they inline and
// overlap: exp, the logistic function, tanh, erf and the normal distribution, each within about 1 ulp. Their Vec<double>
// forms are SLEEF's. For *.simd.cpp files only. The polynomials are minimax fits in relative error.
#pragma once

#include "kernel/cpu/simd/vec_math.h"
#include "kernel/cpu/simd/vec_tables.h"

namespace calque {
namespace {

// NaN stays NaN.
#if defined(__AVX512F__)
CALQUE_INLINE Vec<float> v_min(Vec<float> x, float limit) { return _mm512_min_ps(splat(limit), x); }
CALQUE_INLINE Vec<float> v_max(Vec<float> x, float limit) { return _mm512_max_ps(splat(limit), x); }
#elif defined(__AVX2__)
CALQUE_INLINE Vec<float> v_min(Vec<float> x, float limit) { return _mm256_min_ps(splat(limit), x); }
CALQUE_INLINE Vec<float> v_max(Vec<float> x, float limit) { return _mm256_max_ps(splat(limit), x); }
#else
CALQUE_INLINE Vec<float> v_min(Vec<float> x, float limit) { return x > limit ? splat<float>(limit) : x; }
CALQUE_INLINE Vec<float> v_max(Vec<float> x, float limit) { return x < limit ? splat<float>(limit) : x; }
#endif

// a / b to within an ulp, for b well inside the normal range: the divider of wide registers is slow.
CALQUE_INLINE Vec<float> quick_divide(Vec<float> a, Vec<float> b) {
#if defined(__AVX512F__)
  const Vec<float> guess = _mm512_rcp14_ps(b);
  const Vec<float> reciprocal = fma(guess, _mm512_fnmadd_ps(b, guess, splat(1.0F)), guess);
  const Vec<float> quotient = a * reciprocal;
  return fma(reciprocal, _mm512_fnmadd_ps(b, quotient, a), quotient);
#else
  return a / b;
#endif
}

CALQUE_INLINE Vec<float> with_sign_of(Vec<float> magnitude, Vec<float> x) {
  const Vec<uint32_t> sign = reinterpret_cast<Vec<uint32_t>>(x) & 0x80000000U;
  return reinterpret_cast<Vec<float>>(reinterpret_cast<Vec<uint32_t>>(magnitude) | sign);
}

// factor * exp(x + tail) for x in [-104, 89] and a tail far below x's precision: range reduction, polynomial for
// exp(r) - 1, scaling.
template <bool has_tail, bool has_factor>
CALQUE_INLINE Vec<float> scaled_exp(Vec<float> x, Vec<float> tail, Vec<float> factor) {
  constexpr float to_integer = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec<float> shifted = fma(x, splat(1.44269504F), splat(to_integer));
  const Vec<float> n = shifted - to_integer;
  Vec<float> r = fma(n, splat(-0.693145751953125F), x);
  r = fma(n, splat(-1.42860677e-6F), r);
  if constexpr (has_tail) r += tail;
  Vec<float> p = fma(splat(0.0013813187833875418F), r, splat(0.008369416929781437F));
  p = fma(p, r, splat(0.04166845604777336F));
  p = fma(p, r, splat(0.16666515171527863F));
  p = fma(p, r, splat(0.4999999403953552F));
  p = fma(p * r, r, r);
  p = has_factor ? fma(factor, p, factor) : p + 1.0F;
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
CALQUE_INLINE Vec<float> exp_in_range(Vec<float> x) { return scaled_exp<false, false>(x, x, x); }

CALQUE_INLINE Vec<float> q_exp(Vec<float> x) { return exp_in_range(v_min(v_max(x, -104.0F), 89.0F)); }
CALQUE_INLINE Vec<double> q_exp(Vec<double> x) { return v_exp(x); }

template <class T>
CALQUE_INLINE bool any(Vec<T> mask) {
  T lanes_of[lanes<T>];
  std::memcpy(lanes_of, &mask, sizeof mask);
  T all = 0;
  for (int i = 0; i < lanes<T>; ++i) all |= lanes_of[i];
  return all != 0;
}

// SLEEF's versions overflow on large arguments, where these are logarithms.
CALQUE_INLINE Vec<float> q_log1p(Vec<float> x) {
  const auto large = x > 1e30F;
  const Vec<float> y = v_log1p(x);
  return any<int32_t>(large) ? (large ? v_log(x) : y) : y;
}
CALQUE_INLINE Vec<double> q_log1p(Vec<double> x) { return v_log1p(x); }
CALQUE_INLINE Vec<float> q_acosh(Vec<float> x) {
  const auto large = x > 1e15F;
  const Vec<float> y = v_acosh(x);
  return any<int32_t>(large) ? (large ? v_log(x) + 0.693147181F : y) : y;
}
CALQUE_INLINE Vec<double> q_acosh(Vec<double> x) {
  const auto large = x > 1e150;
  const Vec<double> y = v_acosh(x);
  return any<int64_t>(large) ? (large ? v_log(x) + 0.69314718055994531 : y) : y;
}
CALQUE_INLINE Vec<float> q_asinh(Vec<float> x) {
  const Vec<float> a = v_fabs(x);
  const auto large = a > 1e15F;
  const Vec<float> y = v_asinh(x);
  if (!any<int32_t>(large)) return y;
  const Vec<float> z = v_log(a) + 0.693147181F;
  return large ? (x < 0.0F ? -z : z) : y;
}
CALQUE_INLINE Vec<double> q_asinh(Vec<double> x) {
  const Vec<double> a = v_fabs(x);
  const auto large = a > 1e150;
  const Vec<double> y = v_asinh(x);
  if (!any<int64_t>(large)) return y;
  const Vec<double> z = v_log(a) + 0.69314718055994531;
  return large ? (x < 0.0 ? -z : z) : y;
}

// 1 / (1 + exp(-x)), rounded where PyTorch rounds.
template <class T>
CALQUE_INLINE Vec<T> q_sigmoid(Vec<T> x) {
  return T(1) / (T(1) + q_exp(-x));
}

#if defined(__AVX512F__)
// The piecewise polynomial of vec_tables.h at 0 <= a <= its end: two registers hold a coefficient of all 32 steps.
template <int terms>
CALQUE_INLINE Vec<float> piecewise(const float (&table)[terms][32], float step, Vec<float> a) {
  constexpr float to_integer = 12582912.0F;
  const Vec<float> shifted = fma(a, splat(1.0F / step), splat(to_integer));
  const __m512i n = reinterpret_cast<__m512i>(shifted);
  const Vec<float> d = fma(shifted - to_integer, splat(-step), a);
  Vec<float> p = _mm512_permutex2var_ps(load(table[terms - 1]), n, load(table[terms - 1] + 16));
#pragma GCC unroll 8
  for (int k = terms - 2; k >= 0; --k) p = fma(p, d, _mm512_permutex2var_ps(load(table[k]), n, load(table[k] + 16)));
  return p;
}
#endif

CALQUE_INLINE Vec<float> q_tanh(Vec<float> x) {
#if defined(__AVX512F__)
  return with_sign_of(piecewise(tanh_table, tanh_step, v_min(v_fabs(x), tanh_end)), x);
#else
  const Vec<float> a = v_fabs(x);
  const Vec<float> s = x * x;
  Vec<float> p = fma(splat(-0.005704989191144705F), s, splat(0.0206390842795372F));
  p = fma(p, s, splat(-0.05373971164226532F));
  p = fma(p, s, splat(0.13331441581249237F));
  p = fma(p, s, splat(-0.3333328068256378F));
  const Vec<float> small = fma(p * s, a, a);
  const Vec<float> e = exp_in_range(v_min(a + a, 40.0F));
  const Vec<float> large = 1.0F - quick_divide(splat(2.0F), e + 1.0F);
  return with_sign_of(a < 0.625F ? small : large, x);
#endif
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
  const Vec<float> small = fma(fma(p, s, splat(0.12837916709F)), a, a);
  Vec<float> q = fma(splat(-2.109555498464033e-05F), a, splat(0.00043446820927783847F));
  q = fma(q, a, splat(-0.004171089269220829F));
  q = fma(q, a, splat(0.025119494646787643F));
  q = fma(q, a, splat(-0.10828018933534622F));
  q = fma(q, a, splat(-0.6333467960357666F));
  q = fma(q, a, splat(-1.1295149326324463F));
  q = fma(q, a, splat(0.00017469354497734457F));
  const Vec<float> large = 1.0F - exp_in_range(q);
  return with_sign_of(a < 0.92F ? small : large, x);
}
CALQUE_INLINE Vec<double> q_erf(Vec<double> x) { return v_erf(x); }

// x * Phi(x), Phi the normal distribution. PyTorch writes 0.5 * x * (1 + erf(x / sqrt(2))), which loses its digits for
// negative x; here the tail Phi(-a) = exp(-a^2 / 2) * P(t), t = (a - 3) / (a + 3), keeps them, and near zero
// Phi(x) = 1/2 + x * C(x^2). Where PyTorch's sum vanishes even in double precision, so does this.
CALQUE_INLINE Vec<float> q_gelu(Vec<float> x) {
#if defined(__AVX512F__)
  const Vec<float> a = v_min(v_fabs(x), normal_tail_end);
  Vec<float> q = piecewise(normal_tail_table, normal_tail_step, a);
  q = a > 8.3743889F ? Vec<float>{} : q;
  return x * (x > 0.0F ? 1.0F - q : q);
#else
  const Vec<float> a = v_min(v_fabs(x), 9.0F);
  const Vec<float> half = a * 0.5F;
  const Vec<float> h = a * half;
  const Vec<float> tail = fma(a, half, -h);
  const Vec<float> t = quick_divide(a - 3.0F, a + 3.0F);
  Vec<float> p = fma(splat(5.2134691941319034e-05F), t, splat(0.00011144702875753865F));
  p = fma(p, t, splat(-0.0003421225701458752F));
  p = fma(p, t, splat(-0.000982636003755033F));
  p = fma(p, t, splat(0.002905928762629628F));
  p = fma(p, t, splat(0.006132063921540976F));
  p = fma(p, t, splat(-0.046213481575250626F));
  p = fma(p, t, splat(0.12322502583265305F));
  p = fma(p, t, splat(-0.20640261471271515F));
  p = fma(p, t, splat(0.12151394784450531F));
  Vec<float> q = scaled_exp<true, true>(-h, -tail, p);
  q = a > 8.3743889F ? Vec<float>{} : q;
  const Vec<float> s = x * x;
  Vec<float> c = fma(splat(0.00010294059029547498F), s, splat(-0.0011812850134447217F));
  c = fma(c, s, splat(0.009972348809242249F));
  c = fma(c, s, splat(-0.0664902925491333F));
  c = fma(c, s, splat(0.3989422917366028F));
  const Vec<float> central = fma(x, c, splat(0.5F));
  return x * (a < 0.75F ? central : x > 0.0F ? 1.0F - q : q);
#endif
}
// By the complement, with what the rounding of its argument cost.
CALQUE_INLINE Vec<double> q_gelu(Vec<double> x) {
  constexpr double c_high = -0.70710678118654752440, c_low = 4.8336466567264567e-17;
  const Vec<double> y = x * c_high;
  const Vec<double> y_tail = fma(x, splat(c_high), -y) + x * c_low;
  const Vec<double> bounded = v_fabs(y) < 6.0 ? y : splat(6.0);
  const Vec<double> slope = 1.1283791670955126 * v_exp(-(bounded * bounded));
  const Vec<double> phi = v_erfc(y) - (v_fabs(y) < 6.0 ? slope * y_tail : Vec<double>{});
  return x < -8.3743889 ? x * 0.0 : x * 0.5 * phi;
}

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
  const Vec<float> e = scaled_exp<true, false>(v_min(v_max(u, -104.0F), 80.0F), u_tail, u);
  const Vec<float> value = x / (1.0F + e);
  return u > 37.429947F ? x * 0.0F : value;  // 1 + tanh(u) is zero in double precision from here on
}
CALQUE_INLINE Vec<double> q_gelu_tanh(Vec<double> x) {
  constexpr double b_high = 1.5957691216057308, b_low = -9.96930880911092e-17;
  constexpr double k_high = 0.071354816272600245, k_low = -4.1218577217431825e-18;
  const Vec<double> c = x > 12.0 ? splat(12.0) : x < -12.0 ? splat(-12.0) : x;
  const Vec<double> s = c * c;
  const Vec<double> s_tail = fma(c, c, -s);
  const Vec<double> product = s * k_high;
  const Vec<double> product_tail = fma(s, splat(k_high), -product) + fma(s, splat(k_low), s_tail * k_high);
  const Vec<double> w = product + b_high;
  const Vec<double> back = w - product;
  const Vec<double> w_tail = (product - (w - back)) + (b_high - back) + (product_tail + b_low);
  const Vec<double> u = -c * w;
  const Vec<double> u_tail = fma(-c, w, -u) - c * w_tail;
  const Vec<double> e = v_exp(u);
  return u > 37.429947 ? x * 0.0 : x / (1.0 + fma(e, u_tail, e));
}

}  // namespace
}  // namespace calque
