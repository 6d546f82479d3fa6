// Elementwise loops over two operands, compiled once per instruction set.
#include <cstring>

#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/simd/vec_loops.h"
#include "kernel/cpu/simd/vec_math.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T>
constexpr bool is_float = std::is_floating_point_v<T>;

template <class T>
CALQUE_INLINE Vec<T> one_or_zero(decltype(Vec<T>{} == Vec<T>{}) mask) {
  return mask ? splat<T>(1) : splat<T>(0);
}
CALQUE_INLINE float s_fmod(float a, float b) { return __builtin_fmodf(a, b); }
CALQUE_INLINE double s_fmod(double a, double b) { return __builtin_fmod(a, b); }
CALQUE_INLINE float s_copysign(float a, float b) { return __builtin_copysignf(a, b); }
CALQUE_INLINE double s_copysign(double a, double b) { return __builtin_copysign(a, b); }

// The parameters of integer loops carry a flag that a division by zero sets; the caller throws.
struct Fault {
  bool* division_by_zero;
};

template <class F>
CALQUE_INLINE void divide(void* const* arrays, int64_t n, const void* parameters, F f) {
  bool zero = false;
  each2<int64_t>(arrays, n, [&](int64_t a, int64_t b) -> int64_t {
    if (b == 0) {
      zero = true;
      return 0;
    }
    if (b == -1) return f(a, b, true);
    return f(a, b, false);
  });
  // Several threads may see one.
  if (zero) __atomic_store_n(static_cast<const Fault*>(parameters)->division_by_zero, true, __ATOMIC_RELAXED);
}
CALQUE_INLINE int64_t negate(int64_t a) { return static_cast<int64_t>(0 - static_cast<uint64_t>(a)); }
CALQUE_INLINE int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
CALQUE_INLINE int64_t int_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 ? -1 : 1;
    return 0;
  }
  int64_t result = 1;
  while (exponent) {
    if (exponent & 1) result = wrap_mul(result, base);
    exponent /= 2;
    base = wrap_mul(base, base);
  }
  return result;
}

// X(name, expression of vectors a and b). T is the element type, V the vector.
#define FLOAT_LOOP(name, expression)                               \
  template <class S>                                               \
  void name##_float(void* const* arrays, int64_t n, const void*) { \
    using T = Wide<S>;                                             \
    using V = Vec<T>;                                              \
    map2<S>(arrays, n, [](V a, V b) -> V { return expression; });  \
  }
#define FLOAT_EACH(name, expression)                               \
  template <class T>                                               \
  void name##_float(void* const* arrays, int64_t n, const void*) { \
    each2<T>(arrays, n, [](T a, T b) -> T { return expression; }); \
  }
#define INT_LOOP(name, expression)                                                         \
  void name##_int(void* const* arrays, int64_t n, const void*) {                           \
    each2<int64_t>(arrays, n, [](int64_t a, int64_t b) -> int64_t { return expression; }); \
  }
#define INT_DIVIDE(name, general, by_minus_one)                                                                     \
  void name##_int(void* const* arrays, int64_t n, const void* parameters) {                                         \
    divide(arrays, n, parameters,                                                                                   \
           [](int64_t a, int64_t b, bool minus_one) -> int64_t { return minus_one ? (by_minus_one) : (general); }); \
  }

FLOAT_LOOP(add, a + b)
INT_LOOP(add, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)))
FLOAT_LOOP(sub, a - b)
INT_LOOP(sub, static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)))
FLOAT_LOOP(mul, a* b)
INT_LOOP(mul, wrap_mul(a, b))
FLOAT_LOOP(div, a / b)
FLOAT_LOOP(div_trunc, v_trunc(a / b))
INT_DIVIDE(div_trunc, a / b, negate(a))
INT_DIVIDE(div_floor, a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0), negate(a))
template <class T>
void div_floor_float(void* const* arrays, int64_t n, const void*) {
  each2<T>(arrays, n, [](T a, T b) -> T {
    if (b == 0) return a / b;
    const T mod = s_fmod(a, b);
    T quotient = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
    if (quotient == 0) return s_copysign(T(0), a / b);
    T floored = static_cast<T>(__builtin_floor(static_cast<double>(quotient)));
    if (quotient - floored > T(0.5)) floored += 1;
    return floored;
  });
}
INT_DIVIDE(remainder, (a % b != 0 && ((a % b < 0) != (b < 0))) ? a % b + b : a % b, 0)
template <class T>
void remainder_float(void* const* arrays, int64_t n, const void*) {
  each2<T>(arrays, n, [](T a, T b) -> T {
    T mod = s_fmod(a, b);
    if (mod != 0 && (b < 0) != (mod < 0)) mod += b;
    return mod;
  });
}
INT_DIVIDE(fmod, a % b, 0)
FLOAT_EACH(fmod, s_fmod(a, b))
FLOAT_LOOP(pow, v_pow(a, b))
INT_LOOP(pow, int_pow(a, b))
FLOAT_LOOP(atan2, v_atan2(a, b))
FLOAT_LOOP(maximum, (a != a) ? a : (b != b) ? b : (a < b ? b : a))
INT_LOOP(maximum, a > b ? a : b)
FLOAT_LOOP(minimum, (a != a) ? a : (b != b) ? b : (a > b ? b : a))
INT_LOOP(minimum, a < b ? a : b)
FLOAT_LOOP(fmax, (a != a) ? b : (b != b) ? a : (a < b ? b : a))
FLOAT_LOOP(fmin, (a != a) ? b : (b != b) ? a : (a > b ? b : a))
INT_LOOP(bitwise_and, a& b)
INT_LOOP(bitwise_or, a | b)
INT_LOOP(bitwise_xor, a ^ b)
INT_LOOP(shift_left, b < 0 || b >= 64 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b))
INT_LOOP(shift_right, a >> (b < 0 || b >= 64 ? 63 : b))
FLOAT_LOOP(eq, one_or_zero<T>(a == b))
INT_LOOP(eq, a == b)
FLOAT_LOOP(ne, one_or_zero<T>(a != b))
INT_LOOP(ne, a != b)
FLOAT_LOOP(lt, one_or_zero<T>(a < b))
INT_LOOP(lt, a < b)
FLOAT_LOOP(le, one_or_zero<T>(a <= b))
INT_LOOP(le, a <= b)
FLOAT_LOOP(gt, one_or_zero<T>(a > b))
INT_LOOP(gt, a > b)
FLOAT_LOOP(ge, one_or_zero<T>(a >= b))
INT_LOOP(ge, a >= b)
FLOAT_LOOP(logical_and, one_or_zero<T>((a != 0) & (b != 0)))
INT_LOOP(logical_and, a != 0 && b != 0)
FLOAT_LOOP(logical_or, one_or_zero<T>((a != 0) | (b != 0)))
INT_LOOP(logical_or, a != 0 || b != 0)
FLOAT_LOOP(logical_xor, one_or_zero<T>((a != 0) ^ (b != 0)))
INT_LOOP(logical_xor, (a != 0) != (b != 0))
FLOAT_LOOP(xlogy, (b != b) ? b : (a == 0) ? V{} : a* v_log(b))
FLOAT_LOOP(hypot, v_hypot(a, b))
FLOAT_EACH(copysign, s_copysign(a, b))
template <class T>
void nextafter_float(void* const* arrays, int64_t n, const void*) {
  each2<T>(arrays, n, [](T a, T b) -> T {
    if constexpr (std::is_same_v<T, float>)
      return __builtin_nextafterf(a, b);
    else
      return __builtin_nextafter(a, b);
  });
}
// logaddexp's sum may cancel down to the rounding errors of its terms: they are computed in more digits.
template <class F>
CALQUE_INLINE void in_double(void* const* arrays, int64_t n, F f) {
  map2<float>(arrays, n, [f](Vec<float> a, Vec<float> b) -> Vec<float> {
    using Half = float __attribute__((vector_size(sizeof(Vec<float>) / 2)));
    Half x[2], y[2];
    std::memcpy(x, &a, sizeof a);
    std::memcpy(y, &b, sizeof b);
    for (int i = 0; i < 2; ++i)
      x[i] = __builtin_convertvector(
          f(__builtin_convertvector(x[i], Vec<double>), __builtin_convertvector(y[i], Vec<double>)), Half);
    std::memcpy(&a, x, sizeof a);
    return a;
  });
}
void logaddexp_single(void* const* arrays, int64_t n, const void*) {
  in_double(arrays, n, [](Vec<double> a, Vec<double> b) -> Vec<double> {
    return (v_fabs(a) == __builtin_inf()) & (a == b) ? a : (a > b ? a : b) + v_log1p(v_exp(-v_fabs(a - b)));
  });
}
void logaddexp2_single(void* const* arrays, int64_t n, const void*) {
  in_double(arrays, n, [](Vec<double> a, Vec<double> b) -> Vec<double> {
    return (v_fabs(a) == __builtin_inf()) & (a == b)
               ? a
               : (a > b ? a : b) + v_log1p(v_exp2(-v_fabs(a - b))) * 1.4426950408889634;
  });
}
void logaddexp_double(void* const* arrays, int64_t n, const void*) {
  each2<double>(arrays, n, [](double a, double b) -> double {
    if (a == b && __builtin_isinf(a)) return a;
    const long double x = a, y = b;
    return static_cast<double>((x > y ? x : y) + __builtin_log1pl(__builtin_expl(-__builtin_fabsl(x - y))));
  });
}
void logaddexp2_double(void* const* arrays, int64_t n, const void*) {
  each2<double>(arrays, n, [](double a, double b) -> double {
    if (a == b && __builtin_isinf(a)) return a;
    const long double x = a, y = b;
    return static_cast<double>((x > y ? x : y) + __builtin_log1pl(__builtin_exp2l(-__builtin_fabsl(x - y))) *
                                                     1.442695040888963407359924681001892137L);
  });
}

#define BOTH(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int }
#define FLOATS(name) \
  ElementRow { &name##_float<float>, &name##_float<double> }
#define BOTH_DIRECT(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, &name##_int, nullptr, &name##_float<BFloat16> }
#define FLOATS_DIRECT(name) \
  ElementRow { &name##_float<float>, &name##_float<double>, nullptr, nullptr, &name##_float<BFloat16> }
#define INTS(name) \
  ElementRow { nullptr, nullptr, &name##_int }
#define SINGLES(name) \
  ElementRow { &name##_single, &name##_double }

}  // namespace

extern const ElementRow binary_table[];
const ElementRow binary_table[] = {
#define X(name, forms, cost) forms(name),
    CALQUE_BINARY(X)
#undef X
};

namespace {
template <class T>
void add_scaled_loop(void* const* arrays, int64_t n, const void* parameters) {
  const T alpha = *static_cast<const T*>(parameters);
  if constexpr (is_float<T>) {
    // PyTorch rounds once, after product and sum. A product with 1 or -1 is exact, so the plain sum rounds once too.
    const Vec<T> scale = splat<T>(alpha);
    if (alpha == 1 || alpha == -1)
      map2<T>(arrays, n, [scale](Vec<T> a, Vec<T> b) -> Vec<T> { return a + scale * b; });
    else
      map2<T>(arrays, n, [scale](Vec<T> a, Vec<T> b) -> Vec<T> { return fma(scale, b, a); });
  } else {
    each2<T>(arrays, n, [alpha](T a, T b) -> T {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(wrap_mul(alpha, b)));
    });
  }
}

#define POWER(name, expression)                                        \
  template <class T>                                                   \
  void name(void* const* arrays, int64_t n, const void*) {             \
    map1<T>(arrays, n, [](Vec<T> x) -> Vec<T> { return expression; }); \
  }
POWER(power_0, (static_cast<void>(x), splat<T>(1)))
POWER(power_1, x)
POWER(power_2, x* x)
POWER(power_3, x* x* x)
POWER(root, v_sqrt(x))
POWER(reciprocal, T(1) / x)
POWER(reciprocal_2, T(1) / (x * x))
POWER(reciprocal_root, T(1) / v_sqrt(x))
}  // namespace
extern const ElementRow pow_table[];
const ElementRow pow_table[] = {
#define X(exponent, name) {&name<float>, &name<double>},
    CALQUE_POWER(X)
#undef X
};

extern const ElementRow add_scaled_table[];
const ElementRow add_scaled_table[] = {{&add_scaled_loop<float>, &add_scaled_loop<double>, &add_scaled_loop<int64_t>}};

}  // namespace calque::kernel::CALQUE_ISA

#undef FLOAT_LOOP
#undef FLOAT_EACH
#undef INT_LOOP
#undef INT_DIVIDE
#undef BOTH
#undef FLOATS
#undef BOTH_DIRECT
#undef FLOATS_DIRECT
#undef INTS
#undef SINGLES
#undef POWER
