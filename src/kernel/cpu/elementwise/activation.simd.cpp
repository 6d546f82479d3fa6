// Loops of the functions in activation.h, compiled once per instruction set.
#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/simd/vec_loops.h"
#include "kernel/cpu/simd/vec_quick.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T>
CALQUE_INLINE const T* values_of(const void* parameters) {
  const auto* p = static_cast<const ActivationParameters*>(parameters);
  if constexpr (std::is_same_v<T, float>)
    return p->f32;
  else if constexpr (std::is_same_v<T, double>)
    return p->f64;
  else
    return p->i64;
}

#define FLOAT_LOOP(name, expression)                                                \
  template <class S>                                                                \
  void name##_float(void* const* arrays, int64_t n, const void* parameters) {       \
    using T = Wide<S>;                                                              \
    using V = Vec<T>;                                                               \
    const T* values = values_of<T>(parameters);                                     \
    const V p = splat<T>(values[0]);                                                \
    [[maybe_unused]] const V q = splat<T>(values[1]);                               \
    [[maybe_unused]] const V r = splat<T>(values[2]);                               \
    map1<S>(arrays, n, [=](V x) -> V { return static_cast<void>(p), expression; }); \
  }
#define INT_LOOP(name, expression)                                               \
  void name##_int(void* const* arrays, int64_t n, const void* parameters) {      \
    const int64_t p = values_of<int64_t>(parameters)[0];                         \
    [[maybe_unused]] const int64_t q = values_of<int64_t>(parameters)[1];        \
    each1<int64_t>(arrays, n, [=](int64_t x) -> int64_t { return expression; }); \
  }

template <class T>
CALQUE_INLINE Vec<T> at_least(Vec<T> x, Vec<T> low) {
  return x < low ? low : x;  // NaN stays
}
template <class T>
CALQUE_INLINE Vec<T> at_most(Vec<T> x, Vec<T> high) {
  return x > high ? high : x;
}

FLOAT_LOOP(clamp, at_most<T>(at_least<T>(x, p), q))
INT_LOOP(clamp, (x < p ? p : x) > q ? q : (x < p ? p : x))
FLOAT_LOOP(clamp_min, at_least<T>(x, p))
INT_LOOP(clamp_min, x < p ? p : x)
FLOAT_LOOP(clamp_max, at_most<T>(x, p))
INT_LOOP(clamp_max, x > p ? p : x)
FLOAT_LOOP(threshold, x <= p ? q : x)
INT_LOOP(threshold, x <= p ? q : x)
FLOAT_LOOP(leaky_relu, x > T(0) ? x : x * p)
FLOAT_LOOP(elu, x < T(0) ? v_expm1(x * r) * p : x * q)
FLOAT_LOOP(softplus, x* p > q ? x : v_log1p(q_exp(x * p)) / p)
FLOAT_LOOP(softshrink, x > p ? x - p : x < -p ? x + p : x * T(0))
FLOAT_LOOP(hardshrink, (x >= -p) & (x <= p) ? V{} : x)
FLOAT_LOOP(logit, v_log(x / (T(1) - x)))
FLOAT_LOOP(nan_to_num, x != x ? p : x == T(__builtin_huge_val()) ? q : x == T(-__builtin_huge_val()) ? r : x)
FLOAT_LOOP(round_up, v_rint(x* p) / p)
FLOAT_LOOP(round_down, v_rint(x / p) * p)

#define BOTH(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int, nullptr, &name##_float<BFloat16> }
#define FLOATS(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, nullptr, nullptr, &name##_float<BFloat16> }

}  // namespace

extern const ElementRow activation_table[];
const ElementRow activation_table[] = {
#define X(name, forms, cost) forms(name),
    CALQUE_ACTIVATION(X)
#undef X
};

}  // namespace calque::kernel::CALQUE_ISA

#undef FLOAT_LOOP
#undef INT_LOOP
#undef BOTH
#undef FLOATS
