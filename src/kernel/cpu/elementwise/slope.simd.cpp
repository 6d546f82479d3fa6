// Loops of the functions in slope.h, compiled once per instruction set.
#include "kernel/cpu/elementwise/slope.h"
#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/simd/vec_loops.h"
#include "kernel/cpu/simd/vec_quick.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T>
CALQUE_INLINE const T* slope_values(const void* parameters) {
  const auto* p = static_cast<const ActivationParameters*>(parameters);
  if constexpr (std::is_same_v<T, float>)
    return p->f32;
  else
    return p->f64;
}

// Expressions of the gradient g and of x.
#define SLOPE_LOOP(name, expression)                                          \
  template <class S>                                                          \
  void name##_slope(void* const* arrays, int64_t n, const void* parameters) { \
    using T = Wide<S>;                                                        \
    using V = Vec<T>;                                                         \
    const T* values = slope_values<T>(parameters);                            \
    [[maybe_unused]] const V p = splat<T>(values[0]);                         \
    [[maybe_unused]] const V q = splat<T>(values[1]);                         \
    [[maybe_unused]] const V r = splat<T>(values[2]);                         \
    map2<S>(arrays, n, [=](V g, V x) -> V { return expression; });            \
  }
#define SLOPE_LOOP_OF_THREE(name, expression)                          \
  template <class S>                                                   \
  void name##_slope(void* const* arrays, int64_t n, const void*) {     \
    using T = Wide<S>;                                                 \
    using V = Vec<T>;                                                  \
    map3<S>(arrays, n, [](V g, V x, V y) -> V { return expression; }); \
  }

template <class T>
constexpr T infinity = static_cast<T>(__builtin_huge_val());

template <class T>
CALQUE_INLINE Vec<T> gelu_slope_at(Vec<T> x) {
  const Vec<T> cdf = T(0.5) * v_erfc(x * T(-0.70710678118654752440));
  const Vec<T> pdf = v_exp(x * x * T(-0.5)) * T(0.39894228040143267794);
  return fma(x, pdf, cdf);
}
template <class T>
CALQUE_INLINE Vec<T> gelu_tanh_slope_at(Vec<T> x) {
  constexpr T beta = T(0.79788456080286535588), kappa = T(0.044715);
  const Vec<T> square = x * x;
  const Vec<T> one = splat<T>(1);
  const Vec<T> tanh = v_tanh(beta * fma(splat(kappa), square * x, x));
  const Vec<T> straight = T(0.5) * (T(1) + tanh);
  const Vec<T> steep = beta * fma(splat(T(3) * kappa), square, one);
  return fma(T(0.5) * x * fma(-tanh, tanh, one), steep, straight);
}
template <class T>
CALQUE_INLINE Vec<T> mish_slope_at(Vec<T> x) {
  const Vec<T> sigmoid = q_sigmoid<T>(x);
  const Vec<T> tanh = x > T(20) ? splat<T>(1) : v_tanh(v_log1p(v_exp(x)));
  return fma(x * sigmoid, fma(-tanh, tanh, splat<T>(1)), tanh);
}
template <class T>
CALQUE_INLINE Vec<T> silu_slope_at(Vec<T> g, Vec<T> x) {
  const Vec<T> sigmoid = q_sigmoid<T>(x);
  return g * sigmoid * fma(x, T(1) - sigmoid, splat<T>(1));
}
template <class T>
CALQUE_INLINE Vec<T> softplus_slope_at(Vec<T> g, Vec<T> scaled) {
  const Vec<T> z = v_exp(scaled);
  return g * z / (z + T(1));
}
template <class T>
CALQUE_INLINE Vec<T> logit_slope_at(Vec<T> g, Vec<T> x) {
  return (x == T(0)) | (x == T(1)) ? g * infinity<T> : g / (x * (T(1) - x));
}

SLOPE_LOOP(sigmoid, g*(T(1) - x) * x)
SLOPE_LOOP(tanh, g* fma(-x, x, splat<T>(1)))
SLOPE_LOOP(threshold, x <= p ? V{} : g)
void threshold_slope_int(void* const* arrays, int64_t n, const void* parameters) {
  const int64_t p = static_cast<const ActivationParameters*>(parameters)->i64[0];
  each2<int64_t>(arrays, n, [p](int64_t g, int64_t x) -> int64_t { return x <= p ? 0 : g; });
}
SLOPE_LOOP(gelu, g* gelu_slope_at<T>(x))
SLOPE_LOOP(gelu_tanh, g* gelu_tanh_slope_at<T>(x))
SLOPE_LOOP(silu, silu_slope_at<T>(g, x))
SLOPE_LOOP(mish, g* mish_slope_at<T>(x))
SLOPE_LOOP(hardtanh, (x > p) & (x < q) ? g : V{})
SLOPE_LOOP(hardswish, x <= T(-3) ? V{} : x >= T(3) ? g : g * ((x / T(3)) + T(0.5)))
SLOPE_LOOP(hardsigmoid, (x > T(-3)) & (x < T(3)) ? g * T(1.0F / 6.0F) : V{})
SLOPE_LOOP(leaky_relu, x > T(0) ? g : g * p)
SLOPE_LOOP(elu, x > T(0) ? g * q : g * r * p * v_exp(x * r))
SLOPE_LOOP(elu_result, x > T(0) ? g * q : g * r * (x + p))
SLOPE_LOOP(softplus, x* p > q ? g : softplus_slope_at<T>(g, x* p))
SLOPE_LOOP(softshrink, (x > p) | (x < -p) ? g : V{})
SLOPE_LOOP(hardshrink, (x >= -p) & (x <= p) ? V{} : g)
SLOPE_LOOP(logit, (x < T(0)) | (x > T(1)) ? splat<T>(static_cast<T>(__builtin_nan(""))) : logit_slope_at<T>(g, x))
SLOPE_LOOP(logit_within, (x >= p) & (x <= q) ? logit_slope_at<T>(g, x) : V{})
SLOPE_LOOP(prelu_weight, x > T(0) ? V{} : x * g)
SLOPE_LOOP_OF_THREE(log_sigmoid,
                    g*((x < T(0) ? splat<T>(1) : V{}) - (x < T(0) ? splat<T>(1) : splat<T>(-1)) * (y / (T(1) + y))))
SLOPE_LOOP_OF_THREE(prelu, x > T(0) ? g : y * g)
template <class T>
CALQUE_INLINE Vec<T> gate_slope_at(Vec<T> g, Vec<T> value, Vec<T> gate) {
  const Vec<T> sigmoid = q_sigmoid<T>(gate);
  return (T(1) - sigmoid) * sigmoid * value * g;
}
SLOPE_LOOP_OF_THREE(glu, gate_slope_at<T>(g, x, y))

#define FLOATS(name) \
  ElementRow { &name##_slope<float>, &name##_slope<double>, nullptr, nullptr, &name##_slope<BFloat16> }
#define BOTH(name) \
  ElementRow { &name##_slope<float>, &name##_slope<double>, &name##_slope_int, nullptr, &name##_slope<BFloat16> }
#define THREE(name) FLOATS(name)

}  // namespace

extern const ElementRow slope_table[];
const ElementRow slope_table[] = {
#define X(name, forms, cost) forms(name),
    CALQUE_SLOPE(X)
#undef X
};

}  // namespace calque::kernel::CALQUE_ISA

#undef SLOPE_LOOP
#undef SLOPE_LOOP_OF_THREE
#undef FLOATS
#undef BOTH
#undef THREE
