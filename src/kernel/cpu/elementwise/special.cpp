#include "kernel/cpu/elementwise/special.h"

#include <math.h>  // lgamma_r
#include <sleef.h>

#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "kernel/cpu/elementwise/unary.h"

namespace calque::kernel {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double pi = 3.14159265358979323846;
constexpr double two_over_sqrt_pi = 1.12837916709551257390;
constexpr double sqrt_half = 0.70710678118654752440;

double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// Recurrence up to 10, then the asymptotic series; reflection for negative arguments.
double digamma(double x) {
  if (x == 0) return std::copysign(inf, -x);
  if (x < 0) {
    if (x == std::trunc(x)) return nan;
    double whole;
    return digamma(1 - x) - pi / std::tan(pi * std::modf(x, &whole));
  }
  double result = 0;
  for (; x < 10; x += 1) result -= 1 / x;
  if (x == 10) return result + 2.25175258906672110764;
  if (x > 1e17) return result + std::log(x);
  const double z = 1 / (x * x);
  // B(2k) / 2k for k = 1 ... 7
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

// The x >= 0 with erfc(x) = q, for 0 < q <= 1: a closed first guess, then Halley's steps.
double inverse_erfc(double q) {
  const double y = 1 - q;
  const double log_term = std::log(q * (1 + y));  // log(1 - y^2)
  const double t = 2 / (pi * 0.147) + log_term / 2;
  double x = std::sqrt(std::sqrt(t * t - log_term / 0.147) - t);
  for (int i = 0; i < 4; ++i) {
    const double residual = y < 0.5 ? y - std::erf(x) : std::erfc(x) - q;
    const double step = residual / (two_over_sqrt_pi * std::exp(-x * x));
    x += step / (1 - x * step);
    if (std::abs(step) <= std::abs(x) * 1e-9) break;
  }
  return x;
}

double erfinv(double y) {
  const double a = std::abs(y);
  if (!(a <= 1)) return nan;
  if (a == 1) return std::copysign(inf, y);
  if (a < 1e-8) return y * (1 / two_over_sqrt_pi);
  if (a < 0.5) {  // q = 1 - a would lose digits
    const double log_term = std::log1p(-a * a);
    const double t = 2 / (pi * 0.147) + log_term / 2;
    double x = std::sqrt(std::sqrt(t * t - log_term / 0.147) - t);
    for (int i = 0; i < 2; ++i) {
      const double step = (a - std::erf(x)) / (two_over_sqrt_pi * std::exp(-x * x));
      x += step / (1 - x * step);
    }
    return std::copysign(x, y);
  }
  return std::copysign(inverse_erfc(1 - a), y);
}

double special_ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0) return -inf;
  if (p == 1) return inf;
  if (p == 0.5) return 0;
  if (p > 0.25 && p < 0.75) return erfinv(2 * p - 1) / sqrt_half;
  return p < 0.5 ? -inverse_erfc(2 * p) / sqrt_half : inverse_erfc(2 * (1 - p)) / sqrt_half;
}

// exp(x^2) with the rounding error of the square taken back.
double exp_square(double x) {
  const double square = x * x;
  const double e = std::exp(square);
  return std::isinf(e) ? e : e + e * std::fma(x, x, -square);
}

double special_erfcx(double x) {
  if (x != x) return x;
  if (x < 0) return x < -26.7 ? inf : 2 * exp_square(x) - special_erfcx(-x);
  if (x < 26) return exp_square(x) * std::erfc(x);
  const double z = 0.5 / (x * x);
  return 0.56418958354775628695 / x * (1 - z * (1 - z * (3 - z * (15 - z * 105))));
}

double special_log_ndtr(double x) {
  const double t = x * sqrt_half;
  return x < -1 ? std::log(special_erfcx(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

// The modified Bessel function of order 0 or 1 for 0 <= x <= 30: the power series, all of whose terms are positive.
template <int order>
double bessel_series(double x) {
  const long double half = static_cast<long double>(x) / 2;
  const long double q = half * half;
  long double term = order == 0 ? 1 : half;
  long double sum = term;
  for (int k = 1; term > sum * 1e-19L; ++k) {
    term *= q / (k * (k + order));
    sum += term;
  }
  return static_cast<double>(sum);
}
// The same times exp(-x), for large x by the asymptotic series.
template <int order>
double scaled_bessel(double x) {
  if (x == inf) return 0;
  if (x <= 30) return bessel_series<order>(x) * std::exp(-x);
  constexpr double mu = 4.0 * order * order;
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double next = term * -(mu - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < std::abs(sum) * 1e-18) break;
    term = next;
    sum += term;
  }
  return sum / std::sqrt(2 * pi * x);
}

template <int order>
double bessel(double x) {
  if (x == inf) return nan;  // infinity over infinity in PyTorch's formula
  if (x <= 30) return bessel_series<order>(x);
  if (x < 700) return scaled_bessel<order>(x) * std::exp(x);
  const double half = std::exp(x / 2);
  return scaled_bessel<order>(x) * half * half;
}
double odd(double value, double x) { return x < 0 ? -value : value; }
double special_i0e(double x) { return x != x ? x : scaled_bessel<0>(std::abs(x)); }
double special_i1e(double x) { return x != x ? x : odd(scaled_bessel<1>(std::abs(x)), x); }
double i0(double x) { return x != x ? x : bessel<0>(std::abs(x)); }
double special_i1(double x) { return x != x ? x : odd(bessel<1>(std::abs(x)), x); }

// Hurwitz's zeta function, the sum over k >= 0 of (q + k)^-x, by the Euler-Maclaurin formula.
double hurwitz_zeta(double x, double q) {
  if (x == 1) return inf;
  if (!(x > 1) || q != q) return nan;
  if (q <= 0) {
    if (q == std::floor(q)) return inf;
    if (x != std::floor(x)) return nan;
  }
  // The terms left of -50 one by one would be endless; they are a difference of two sums to the right, with x's sign.
  if (q < -64) {
    const double skipped = std::floor(-q) - 50;
    const double left = hurwitz_zeta(x, -q - skipped + 1) - hurwitz_zeta(x, -q + 1);
    return hurwitz_zeta(x, q + skipped) + (std::fmod(x, 2) == 0 ? left : -left);
  }
  constexpr double machine = 1.11022302462515654042e-16;
  double sum = std::pow(q, -x);
  double a = q;
  double b = 0;
  for (int i = 0; i < 9 || a <= 9;) {
    ++i;
    a += 1;
    b = std::pow(a, -x);
    sum += b;
    if (std::abs(b) < machine * std::abs(sum)) return sum;
  }
  sum += b * a / (x - 1) - 0.5 * b;
  // (2k)! / B(2k)
  constexpr double coefficients[] = {12.0,
                                     -720.0,
                                     30240.0,
                                     -1209600.0,
                                     47900160.0,
                                     -1.8924375803183791606e9,
                                     7.47242496e10,
                                     -2.950130727918164224e12,
                                     1.1646782814350067249e14,
                                     -4.5979787224074726105e15,
                                     1.8152105401943546773e17,
                                     -7.1661652561756670113e18};
  double factor = 1;
  double k = 0;
  for (const double c : coefficients) {
    factor *= x + k;
    b /= a;
    const double t = factor * b / c;
    sum += t;
    if (std::abs(t) < machine * std::abs(sum)) break;
    k += 1;
    factor *= x + k;
    b /= a;
    k += 1;
  }
  return sum;
}

// In the type of the argument: next to a pole the result is made of the rounding of pi * x.
template <class T>
T trigamma(T x) {
  constexpr T pi_of_type = static_cast<T>(pi);
  T sign = 1;
  T result = 0;
  if (x < T(0.5)) {
    sign = -1;
    const T s = std::sin(pi_of_type * x);
    result -= pi_of_type * pi_of_type / (s * s);
    x = 1 - x;
  }
  // As many steps and terms as PyTorch takes: what is left out is the larger part of the error.
  for (int i = 0; i < 6; ++i, x += 1) result += 1 / (x * x);
  const T z = 1 / (x * x);
  result += (1 + 1 / (2 * x) + z * (T(1) / 6 - z * (T(1) / 30 - z * (T(1) / 42)))) / x;
  return sign * result;
}

double polygamma_of(double x, int64_t n) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma<double>(x);
  const auto order = static_cast<double>(n);
  return (n % 2 ? 1.0 : -1.0) * std::exp(log_gamma(order + 1)) * hurwitz_zeta(order + 1, x);
}

double mvlgamma_of(double x, int64_t p) {
  const auto dimension = static_cast<double>(p);
  double sum = 0;
  for (int64_t j = 0; j < p; ++j) sum += Sleef_lgamma_u10(x + (-dimension / 2 + 0.5 + 0.5 * static_cast<double>(j)));
  return sum + dimension * (dimension - 1) * std::log(pi) / 4;
}

template <class T, class F>
void each(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* x = static_cast<const T*>(arrays[1]);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(static_cast<double>(x[i])));
}

template <class T, double (*fn)(double)>
void plain_loop(void* const* arrays, int64_t n, const void*) {
  each<T>(arrays, n, fn);
}
template <class T, double (*fn)(double, int64_t)>
void order_loop(void* const* arrays, int64_t n, const void* order) {
  each<T>(arrays, n, [order](double x) { return fn(x, *static_cast<const int64_t*>(order)); });
}

void trigamma_loop(void* const* arrays, int64_t n, const void*) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(arrays[0])[i] = trigamma<float>(static_cast<const float*>(arrays[1])[i]);
}

struct SpecialRow {
  const char* name;
  ElementFn f32, f64;
};
constexpr SpecialRow rows[] = {
#define X(name) {#name, &plain_loop<float, &name>, &plain_loop<double, &name>},
    CALQUE_SPECIAL(X)
#undef X
};

void run(const SpecialRow& row, DType common, const TensorBase& self, const TensorBase& out, const void* parameter) {
  ElementLoop loop(common);
  const ElementFn f = loop.compute() == Compute::f32 ? row.f32 : loop.compute() == Compute::f64 ? row.f64 : nullptr;
  if (!f || is_float8(common)) not_implemented(row.name, common);
  loop.output(out).input(self).run(f, parameter, 512);
}

}  // namespace

void special(Special fn, DType common, const TensorBase& self, const TensorBase& out) {
  const bool wide_only = fn == Special::special_ndtri || fn == Special::special_log_ndtr || fn == Special::special_erfcx;
  if (wide_only && is_reduced_float(common)) not_implemented(rows[static_cast<size_t>(fn)].name, common);
  run(rows[static_cast<size_t>(fn)], common, self, out, nullptr);
}

void polygamma(int64_t n, DType common, const TensorBase& self, const TensorBase& out) {
  if (n == 1) return run({"polygamma", &trigamma_loop, &order_loop<double, &polygamma_of>}, common, self, out, &n);
  run({"polygamma", &order_loop<float, &polygamma_of>, &order_loop<double, &polygamma_of>}, common, self, out, &n);
}

void mvlgamma(int64_t p, DType common, const TensorBase& self, const TensorBase& out) {
  run({"mvlgamma", &order_loop<float, &mvlgamma_of>, &order_loop<double, &mvlgamma_of>}, common, self, out, &p);
}

}  // namespace calque::kernel
