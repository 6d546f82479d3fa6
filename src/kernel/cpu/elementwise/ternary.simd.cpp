// Loops of the functions in ternary.h, compiled once per instruction set.
#include "kernel/cpu/elementwise/ternary.h"
#include "kernel/cpu/elementwise/convert_table.h"
#include "kernel/cpu/simd/vec_loops.h"
#include "kernel/cpu/simd/vec_quick.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T, class F>
CALQUE_INLINE void each3(void* const* arrays, int64_t n, F f) {
  T* out = static_cast<T*>(arrays[0]);
  const T* a = static_cast<const T*>(arrays[1]);
  const T* b = static_cast<const T*>(arrays[2]);
  const T* c = static_cast<const T*>(arrays[3]);
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
}

#define FLOAT_LOOP(name, expression)                                   \
  template <class T>                                                   \
  void name##_float(void* const* arrays, int64_t n, const void*) {     \
    using V = Vec<T>;                                                  \
    map3<T>(arrays, n, [](V a, V b, V c) -> V { return expression; }); \
  }
#define FLOAT_LOOP_VALUE(name, expression)                                    \
  template <class T>                                                          \
  void name##_float(void* const* arrays, int64_t n, const void* parameters) { \
    using V = Vec<T>;                                                         \
    const V value = splat<T>(*static_cast<const T*>(parameters));             \
    map3<T>(arrays, n, [value](V a, V b, V c) -> V { return expression; });   \
  }

FLOAT_LOOP(where, a != T(0) ? b : c)
void where_int(void* const* arrays, int64_t n, const void*) {
  each3<int64_t>(arrays, n, [](int64_t a, int64_t b, int64_t c) { return a != 0 ? b : c; });
}
void where_complex(void* const* arrays, int64_t n, const void*) {
  each3<RawComplex<double>>(
      arrays, n, [](RawComplex<double> a, RawComplex<double> b, RawComplex<double> c) { return a.re != 0 ? b : c; });
}

// The lower bound first: where the bounds cross, the upper one wins.
template <class T>
CALQUE_INLINE Vec<T> clamp_one(Vec<T> x, Vec<T> low, Vec<T> high) {
  Vec<T> y = (x != x) ? x : (low != low) ? low : x < low ? low : x;
  return (y != y) ? y : (high != high) ? high : y > high ? high : y;
}
FLOAT_LOOP(clamp, clamp_one<T>(a, b, c))
void clamp_int(void* const* arrays, int64_t n, const void*) {
  each3<int64_t>(arrays, n, [](int64_t a, int64_t b, int64_t c) {
    const int64_t y = a < b ? b : a;
    return y > c ? c : y;
  });
}

// From the nearer end, rounded once.
template <class T>
CALQUE_INLINE Vec<T> lerp_one(Vec<T> start, Vec<T> end, Vec<T> weight) {
  const auto near_start = v_fabs(weight) < T(0.5);
  return fma(near_start ? weight : weight - T(1), end - start, near_start ? start : end);
}
FLOAT_LOOP(lerp, lerp_one<T>(a, b, c))

FLOAT_LOOP_VALUE(addcmul, fma(value* b, c, a))
void addcmul_int(void* const* arrays, int64_t n, const void* parameters) {
  const auto value = static_cast<uint64_t>(*static_cast<const int64_t*>(parameters));
  each3<int64_t>(arrays, n, [value](int64_t a, int64_t b, int64_t c) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + value * static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
  });
}
FLOAT_LOOP_VALUE(addcdiv, a + value * b / c)

#define FLOATS(name) \
  ElementRow { &name##_float<float>, &name##_float<double> }
#define NUMBERS(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int }
#define ALL(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int, &name##_complex }

namespace gated {
template <class T>
void prelu_float(void* const* arrays, int64_t n, const void*) {
  map2<T>(arrays, n, [](Vec<T> x, Vec<T> weight) -> Vec<T> { return x > T(0) ? x : weight * x; });
}
template <class T>
void glu_float(void* const* arrays, int64_t n, const void*) {
  map2<T>(arrays, n, [](Vec<T> a, Vec<T> b) -> Vec<T> { return a * q_sigmoid<T>(b); });
}
template <class T>
void scale_float(void* const* arrays, int64_t n, const void*) {
  map2<T>(arrays, n, [](Vec<T> a, Vec<T> b) -> Vec<T> { return a * b; });
}
template <class T>
void log_sigmoid_float(void* const* arrays, int64_t n, const void*) {
  void* const buffer[] = {arrays[1], arrays[2]};
  map1<T>(buffer, n, [](Vec<T> x) -> Vec<T> { return q_exp(-v_fabs(x)); });
  void* const output[] = {arrays[0], arrays[2], arrays[1]};
  map2<T>(output, n, [](Vec<T> x, Vec<T> e) -> Vec<T> { return (x < T(0) ? x : x != x ? x : Vec<T>{}) - v_log1p(e); });
}
}  // namespace gated

}  // namespace

extern const ElementRow ternary_table[];
const ElementRow ternary_table[] = {
#define X(name, forms) forms(name),
    CALQUE_TERNARY(X)
#undef X
};

extern const ElementRow gated_table[];
const ElementRow gated_table[] = {
#define X(name, cost) FLOATS(gated::name),
    CALQUE_GATED(X)
#undef X
};

}  // namespace calque::kernel::CALQUE_ISA

#undef FLOAT_LOOP
#undef FLOAT_LOOP_VALUE
#undef FLOATS
#undef NUMBERS
#undef ALL
