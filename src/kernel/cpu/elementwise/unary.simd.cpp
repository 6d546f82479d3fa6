// Elementwise loops over one operand, compiled once per instruction set.
#include "kernel/cpu/elementwise/unary.h"
#include "kernel/cpu/simd/vec_loops.h"
#include "kernel/cpu/simd/vec_quick.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T>
using Mask = decltype(Vec<T>{} == Vec<T>{});

template <class T>
CALQUE_INLINE Vec<T> one_or_zero(Mask<T> mask) {
  return mask ? splat<T>(1) : splat<T>(0);
}
template <class T>
constexpr T inf = std::is_same_v<T, float> ? __builtin_huge_valf() : static_cast<T>(__builtin_huge_val());

// The sign bits of x as a mask of whole lanes.
template <class T>
CALQUE_INLINE Mask<T> negative(Vec<T> x) {
  return reinterpret_cast<Mask<T>>(x) < 0;
}

#define FLOAT_LOOP(name, expression)                               \
  template <class S>                                               \
  void name##_float(void* const* arrays, int64_t n, const void*) { \
    using T = Wide<S>;                                             \
    using V = Vec<T>;                                              \
    map1<S>(arrays, n, [](V x) -> V { return expression; });       \
  }
#define INT_LOOP(name, expression)                                                               \
  void name##_int(void* const* arrays, int64_t n, const void*) {                                 \
    each1<int64_t>(arrays, n, []([[maybe_unused]] int64_t x) -> int64_t { return expression; }); \
  }

CALQUE_INLINE int64_t wrap_negate(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }

FLOAT_LOOP(abs, v_fabs(x))
INT_LOOP(abs, x < 0 ? wrap_negate(x) : x)
FLOAT_LOOP(neg, -x)
INT_LOOP(neg, wrap_negate(x))
INT_LOOP(bitwise_not, ~x)
FLOAT_LOOP(logical_not, one_or_zero<T>(x == T(0)))
INT_LOOP(logical_not, x == 0)
FLOAT_LOOP(sign, x > T(0) ? splat<T>(1) : x < T(0) ? splat<T>(-1) : V{})
INT_LOOP(sign, (x > 0) - (x < 0))
FLOAT_LOOP(signbit, one_or_zero<T>(negative<T>(x)))
INT_LOOP(signbit, x < 0)
FLOAT_LOOP(isnan, one_or_zero<T>(x != x))
INT_LOOP(isnan, 0)
FLOAT_LOOP(isinf, one_or_zero<T>(v_fabs(x) == inf<T>))
INT_LOOP(isinf, 0)
FLOAT_LOOP(isfinite, one_or_zero<T>(v_fabs(x) < inf<T>))
INT_LOOP(isfinite, 1)
FLOAT_LOOP(isposinf, one_or_zero<T>(x == inf<T>))
INT_LOOP(isposinf, 0)
FLOAT_LOOP(isneginf, one_or_zero<T>(x == -inf<T>))
INT_LOOP(isneginf, 0)
FLOAT_LOOP(ceil, v_ceil(x))
FLOAT_LOOP(floor, v_floor(x))
FLOAT_LOOP(trunc, v_trunc(x))
FLOAT_LOOP(round, v_rint(x))
FLOAT_LOOP(frac, x - v_trunc(x))
FLOAT_LOOP(sqrt, v_sqrt(x))
FLOAT_LOOP(rsqrt, T(1) / v_sqrt(x))
FLOAT_LOOP(reciprocal, T(1) / x)
FLOAT_LOOP(deg2rad, x* T(0.017453292519943295769236907684886))
FLOAT_LOOP(rad2deg, x* T(57.295779513082320876798154814105))
FLOAT_LOOP(angle, x != x ? x : x < T(0) ? splat<T>(static_cast<T>(3.14159265358979323846)) : V{})
FLOAT_LOOP(exp, q_exp(x))
FLOAT_LOOP(exp2, v_exp2(x))
FLOAT_LOOP(expm1, v_expm1(x))
FLOAT_LOOP(log, v_log(x))
FLOAT_LOOP(log2, v_log2(x))
FLOAT_LOOP(log10, v_log10(x))
FLOAT_LOOP(log1p, q_log1p(x))
FLOAT_LOOP(sin, v_sin(x))
FLOAT_LOOP(cos, v_cos(x))
FLOAT_LOOP(tan, v_tan(x))
FLOAT_LOOP(asin, v_asin(x))
FLOAT_LOOP(acos, v_acos(x))
FLOAT_LOOP(atan, v_atan(x))
FLOAT_LOOP(sinh, v_sinh(x))
FLOAT_LOOP(cosh, v_cosh(x))
FLOAT_LOOP(tanh, q_tanh(x))
FLOAT_LOOP(asinh, q_asinh(x))
FLOAT_LOOP(acosh, q_acosh(x))
FLOAT_LOOP(atanh, v_atanh(x))
FLOAT_LOOP(erf, q_erf(x))
FLOAT_LOOP(erfc, v_erfc(x))
FLOAT_LOOP(lgamma, v_lgamma(x))
FLOAT_LOOP(sigmoid, q_sigmoid<T>(x))
FLOAT_LOOP(sinc, x == T(0) ? splat<T>(1) : v_sin(x * T(3.14159265358979323846)) / (x * T(3.14159265358979323846)))
FLOAT_LOOP(special_entr, x != x ? x : x > T(0) ? -x * v_log(x) : x == T(0) ? V{} : splat<T>(-inf<T>))
// The comparison keeps -0 and NaN, as PyTorch's max(x, 0) does.
FLOAT_LOOP(relu, x < T(0) ? V{} : x)
INT_LOOP(relu, x < 0 ? 0 : x)
FLOAT_LOOP(silu, x / (T(1) + q_exp(-x)))
FLOAT_LOOP(mish, x* v_tanh(v_log1p(v_exp(x))))
FLOAT_LOOP(hardswish, x*((x + T(3) < T(0) ? V{} : x + T(3) > T(6) ? splat<T>(6) : x + T(3))) / T(6))
FLOAT_LOOP(hardsigmoid, (x + T(3) < T(0) ? V{} : x + T(3) > T(6) ? splat<T>(6) : x + T(3)) / T(6))
FLOAT_LOOP(gelu, q_gelu(x))
FLOAT_LOOP(gelu_tanh, q_gelu_tanh(x))
FLOAT_LOOP(log_sigmoid, (x < T(0) ? x : V{}) - v_log1p(q_exp(-v_fabs(x))))

#define BOTH(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int, nullptr, &name##_float<BFloat16> }
#define FLOATS(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, nullptr, nullptr, &name##_float<BFloat16> }
#define INTS(name) \
  ElementRow { nullptr, nullptr, &name##_int }

}  // namespace

extern const ElementRow unary_table[];
const ElementRow unary_table[] = {
#define X(name, forms, cost) forms(name),
    CALQUE_UNARY(X)
#undef X
};

}  // namespace calque::kernel::CALQUE_ISA

#undef FLOAT_LOOP
#undef INT_LOOP
#undef BOTH
#undef FLOATS
#undef INTS
