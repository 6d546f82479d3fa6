// Combining one element into another as scatter and index reductions do it: sums of 16-bit floats round at every step,
// integers wrap, bool is or/and, a NaN wins an extremum.
#pragma once

#include <cmath>
#include <type_traits>

#include "calque/tensor/dtype.h"

namespace calque::kernel {

template <class T>
inline constexpr bool is_number = is_arithmetic_type<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

namespace reduce_detail {
template <class T>
struct Wide {
  using type = std::make_unsigned_t<T>;
};
template <>
struct Wide<Bool> {
  using type = uint8_t;
};
template <>
struct Wide<Half> {
  using type = float;
};
template <>
struct Wide<BFloat16> {
  using type = float;
};
template <>
struct Wide<float> {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};
}  // namespace reduce_detail

// What T is added and multiplied in: unsigned integers, so that overflow wraps, and float for 16-bit floats.
template <class T>
using WideOf = typename reduce_detail::Wide<T>::type;

template <class T>
inline bool is_nan(T x) {
  if constexpr (is_integral_type<T>)
    return false;
  else
    return std::isnan(static_cast<WideOf<T>>(x));
}
template <class T>
inline T reduce_add(T a, T b) {
  if constexpr (std::is_same_v<T, Bool>)
    return a || b;
  else
    return static_cast<T>(static_cast<WideOf<T>>(static_cast<WideOf<T>>(a) + static_cast<WideOf<T>>(b)));
}
template <class T>
inline T reduce_multiply(T a, T b) {
  if constexpr (std::is_same_v<T, Bool>)
    return a && b;
  else if constexpr (std::is_same_v<T, uint16_t> || std::is_same_v<T, int16_t>)
    return static_cast<T>(static_cast<uint32_t>(static_cast<uint16_t>(a)) * static_cast<uint16_t>(b));
  else
    return static_cast<T>(static_cast<WideOf<T>>(static_cast<WideOf<T>>(a) * static_cast<WideOf<T>>(b)));
}
template <class T>
inline bool less(T a, T b) {
  if constexpr (is_arithmetic_type<T>)
    return a < b;
  else
    return static_cast<float>(a) < static_cast<float>(b);
}
template <class T>
inline T reduce_maximum(T a, T b) {
  return is_nan(a) || !(is_nan(b) || less(a, b)) ? a : b;
}
template <class T>
inline T reduce_minimum(T a, T b) {
  return is_nan(a) || !(is_nan(b) || less(b, a)) ? a : b;
}

}  // namespace calque::kernel
