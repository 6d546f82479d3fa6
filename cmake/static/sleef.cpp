// SLEEF's functions by the C library's, one number at a time, for programs that are linked statically on systems whose SLEEF is a shared
// library only (Debian's). Compiled once for each instruction set, as the kernels are; CALQUE_STATIC_SLEEF is a libsleef.a to use instead.
#include <math.h>

#if defined(__AVX512F__)
#define CALQUE_SUFFIX avx512f
#define CALQUE_FLOATS 16
#define CALQUE_DOUBLES 8
#elif defined(__AVX2__)
#define CALQUE_SUFFIX avx2
#define CALQUE_FLOATS 8
#define CALQUE_DOUBLES 4
#else
#define CALQUE_SUFFIX sse2
#define CALQUE_FLOATS 4
#define CALQUE_DOUBLES 2
#endif

namespace {

typedef float Floats __attribute__((vector_size(CALQUE_FLOATS * sizeof(float))));
typedef double Doubles __attribute__((vector_size(CALQUE_DOUBLES * sizeof(double))));

// Of every element. The number of elements is that of V.
template <class V, class F>
[[gnu::always_inline]] inline V each(V x, F&& f) {
  for (unsigned i = 0; i < sizeof(V) / sizeof(x[0]); ++i) x[i] = f(x[i]);
  return x;
}
template <class V, class F>
[[gnu::always_inline]] inline V each(V x, V y, F&& f) {
  for (unsigned i = 0; i < sizeof(V) / sizeof(x[0]); ++i) x[i] = f(x[i], y[i]);
  return x;
}

}  // namespace

#define CALQUE_PASTE(name, kind, ulp, suffix) Sleef_##name##kind##_##ulp##suffix
#define CALQUE_NAME(name, kind, ulp, suffix) CALQUE_PASTE(name, kind, ulp, suffix)
#define CALQUE_KIND_(letter, count) letter##count
#define CALQUE_KIND(letter, count) CALQUE_KIND_(letter, count)
#define F32 CALQUE_KIND(f, CALQUE_FLOATS)
#define F64 CALQUE_KIND(d, CALQUE_DOUBLES)

#define X(name, ulp)                                              \
  Floats CALQUE_NAME(name, F32, ulp, CALQUE_SUFFIX)(Floats x);    \
  Floats CALQUE_NAME(name, F32, ulp, CALQUE_SUFFIX)(Floats x) {   \
    return each(x, [](float v) { return ::name##f(v); });         \
  }                                                               \
  Doubles CALQUE_NAME(name, F64, ulp, CALQUE_SUFFIX)(Doubles x);  \
  Doubles CALQUE_NAME(name, F64, ulp, CALQUE_SUFFIX)(Doubles x) { \
    return each(x, [](double v) { return ::name(v); });           \
  }
#define Y(name, ulp)                                                         \
  Floats CALQUE_NAME(name, F32, ulp, CALQUE_SUFFIX)(Floats x, Floats y);     \
  Floats CALQUE_NAME(name, F32, ulp, CALQUE_SUFFIX)(Floats x, Floats y) {    \
    return each(x, y, [](float v, float w) { return ::name##f(v, w); });     \
  }                                                                          \
  Doubles CALQUE_NAME(name, F64, ulp, CALQUE_SUFFIX)(Doubles x, Doubles y);  \
  Doubles CALQUE_NAME(name, F64, ulp, CALQUE_SUFFIX)(Doubles x, Doubles y) { \
    return each(x, y, [](double v, double w) { return ::name(v, w); });      \
  }

// clang-format off
extern "C" {
X(exp, u10) X(exp2, u10) X(expm1, u10) X(log, u10) X(log2, u10) X(log10, u10) X(log1p, u10)
X(sin, u10) X(cos, u10) X(tan, u10) X(asin, u10) X(acos, u10) X(atan, u10)
X(sinh, u10) X(cosh, u10) X(tanh, u10) X(asinh, u10) X(acosh, u10) X(atanh, u10)
X(erf, u10) X(erfc, u15) X(lgamma, u10) X(tgamma, u10)
Y(pow, u10) Y(atan2, u10) Y(hypot, u05)
#if CALQUE_FLOATS == 4
X(floor, ) X(ceil, ) X(trunc, ) X(rint, )
double Sleef_lgamma_u10(double x);
double Sleef_lgamma_u10(double x) { return ::lgamma(x); }
#endif
}
// clang-format on
