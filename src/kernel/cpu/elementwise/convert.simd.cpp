// Conversion loops, compiled once per instruction set.
#include "kernel/cpu/elementwise/convert_table.h"
#include "kernel/cpu/simd/vec.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

// static_cast as PyTorch casts: integers wrap, floats truncate, anything non-zero is true, complex loses its imaginary part.
template <class To, class From>
CALQUE_INLINE To cast(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return cast<To, float>(widen(x));
  } else if constexpr (requires { x.bits; }) {
    return cast<To, float>(decode_float8(x));
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>)
      return To{static_cast<decltype(To::re)>(x.re), static_cast<decltype(To::re)>(x.im)};
    else if constexpr (std::is_same_v<To, Bool>)
      return x.re != 0 || x.im != 0;
    else
      return cast<To>(x.re);
  } else if constexpr (is_complex_type<To>) {
    return To{cast<decltype(To::re)>(x), 0};
  } else if constexpr (std::is_same_v<To, Bool>) {
    return x != 0;
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return narrow<To>(static_cast<float>(x));
  } else if constexpr (requires(To t) { t.bits; }) {
    return encode_float8<To>(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && is_integral_type<To> && sizeof(To) < 4) {
    // Narrow integers go through int32, as the machine's conversion does.
    return static_cast<To>(static_cast<int32_t>(static_cast<int64_t>(x)));
  } else {
    return static_cast<To>(x);
  }
}

template <class S, class C>
void load_loop(const void* src, int64_t stride, void* dst, int64_t n) {
  const char* p = static_cast<const char*>(src);
  C* out = static_cast<C*>(dst);
  if (stride == static_cast<int64_t>(sizeof(S))) {
    const S* in = reinterpret_cast<const S*>(p);
    int64_t i = 0;
    if constexpr (std::is_same_v<C, float> && (std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>))
      for (; i + lanes<float> <= n; i += lanes<float>) store(out + i, load_wide(in + i));
    if constexpr (std::is_same_v<S, Bool> && is_arithmetic_type<C>) {  // as bytes, which the compiler widens in registers
      const auto* bytes = static_cast<const uint8_t*>(src);
      for (; i < n; ++i) out[i] = static_cast<C>(bytes[i] != 0 ? 1 : 0);
    }
    for (; i < n; ++i) out[i] = cast<C>(in[i]);
  } else if (stride == 0) {
    if (n <= 0) return;  // there may be nothing to read
    const C value = cast<C>(*reinterpret_cast<const S*>(p));
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = cast<C>(*reinterpret_cast<const S*>(p + i * stride));
  }
}

template <class C, class D>
void store_loop(const void* src, void* dst, int64_t stride, int64_t n) {
  const C* in = static_cast<const C*>(src);
  char* p = static_cast<char*>(dst);
  if (stride == static_cast<int64_t>(sizeof(D))) {
    D* out = reinterpret_cast<D*>(p);
    int64_t i = 0;
    if constexpr (std::is_same_v<C, float> && (std::is_same_v<D, Half> || std::is_same_v<D, BFloat16>))
      for (; i + lanes<float> <= n; i += lanes<float>) store_narrow(out + i, load(in + i));
    for (; i < n; ++i) out[i] = cast<D>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<D*>(p + i * stride) = cast<D>(in[i]);
  }
}

template <class D, class C>
void normalize_loop(void* values, int64_t n) {
  C* x = static_cast<C*>(values);
  for (int64_t i = 0; i < n; ++i) x[i] = cast<C>(cast<D>(x[i]));
}

template <class S>
constexpr ConvertRow convert_row() {
  constexpr bool widened = std::is_same_v<S, float> || std::is_same_v<S, double> || std::is_same_v<S, int64_t> ||
                           std::is_same_v<S, uint64_t> || is_complex_type<S>;
  ConvertRow r{{&load_loop<S, float>, &load_loop<S, double>, &load_loop<S, int64_t>, &load_loop<S, RawComplex<double>>},
               {&store_loop<float, S>, &store_loop<double, S>, &store_loop<int64_t, S>, &store_loop<RawComplex<double>, S>},
               nullptr};
  if constexpr (!widened) {
    using C = std::conditional_t<is_integral_type<S>, int64_t, float>;
    r.normalize = &normalize_loop<S, C>;
  }
  return r;
}

}  // namespace

// In the order of CALQUE_DTYPES; complex types as plain pairs, because std::complex would emit shared code.
template <class T>
using RawOf = std::conditional_t<std::is_same_v<T, Complex64>, RawComplex<float>,
                                 std::conditional_t<std::is_same_v<T, Complex128>, RawComplex<double>, T>>;

extern const ConvertRow convert_table[];
const ConvertRow convert_table[] = {
#define X(name, type, category, number) convert_row<RawOf<type>>(),
    CALQUE_DTYPES(X)
#undef X
};

}  // namespace calque::kernel::CALQUE_ISA
