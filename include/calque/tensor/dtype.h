// Element types: one list (CALQUE_DTYPES), from which names, sizes, C++ types and dispatch derive. `dispatch` turns a
// run-time dtype into a compile-time type for the caller's generic lambda.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include "calque/base/half.h"

namespace calque {

// An element of a bool tensor: true is any byte but 0. Files, views of other dtypes and foreign memory hold such bytes, and
// a C++ bool may hold only 0 and 1; so kernels see this type, and reading one is always defined.
struct Bool {
  uint8_t byte;

  Bool() = default;
  [[gnu::always_inline]] constexpr Bool(bool value) : byte(value ? 1 : 0) {}
  [[gnu::always_inline]] constexpr operator bool() const { return byte != 0; }
};
static_assert(sizeof(Bool) == 1);
}  // namespace calque

template <>
class std::numeric_limits<calque::Bool> : public std::numeric_limits<bool> {};

namespace calque {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

// name, C++ type, category, PyTorch's c10::ScalarType number
#define CALQUE_DTYPES(X)                           \
  X(bool_, Bool, boolean, 11)                      \
  X(uint8, uint8_t, integral, 0)                   \
  X(int8, int8_t, integral, 1)                     \
  X(int16, int16_t, integral, 2)                   \
  X(int32, int32_t, integral, 3)                   \
  X(int64, int64_t, integral, 4)                   \
  X(uint16, uint16_t, integral, 27)                \
  X(uint32, uint32_t, integral, 28)                \
  X(uint64, uint64_t, integral, 29)                \
  X(float16, Half, floating, 5)                    \
  X(bfloat16, BFloat16, floating, 15)              \
  X(float32, float, floating, 6)                   \
  X(float64, double, floating, 7)                  \
  X(float8_e4m3fn, Float8E4M3FN, floating, 24)     \
  X(float8_e5m2, Float8E5M2, floating, 23)         \
  X(float8_e4m3fnuz, Float8E4M3FNUZ, floating, 26) \
  X(float8_e5m2fnuz, Float8E5M2FNUZ, floating, 25) \
  X(float8_e8m0fnu, Float8E8M0FNU, floating, 44)   \
  X(complex64, Complex64, complex, 9)              \
  X(complex128, Complex128, complex, 10)

enum class DType : uint8_t {
#define X(name, type, category, number) name,
  CALQUE_DTYPES(X)
#undef X
};
inline constexpr DType all_dtypes[] = {
#define X(name, type, category, number) DType::name,
    CALQUE_DTYPES(X)
#undef X
};

enum class DTypeCategory : uint8_t { boolean, integral, floating, complex };

namespace dtype_detail {
inline constexpr uint8_t sizes[] = {
#define X(name, type, category, number) sizeof(type),
    CALQUE_DTYPES(X)
#undef X
};
inline constexpr DTypeCategory categories[] = {
#define X(name, type, category, number) DTypeCategory::category,
    CALQUE_DTYPES(X)
#undef X
};
}  // namespace dtype_detail

constexpr size_t item_size(DType d) { return dtype_detail::sizes[static_cast<size_t>(d)]; }
constexpr DTypeCategory category(DType d) { return dtype_detail::categories[static_cast<size_t>(d)]; }
constexpr bool is_floating(DType d) { return category(d) == DTypeCategory::floating; }
constexpr bool is_complex(DType d) { return category(d) == DTypeCategory::complex; }
constexpr bool is_integral(DType d, bool include_bool = true) {
  return category(d) == DTypeCategory::integral || (include_bool && d == DType::bool_);
}
constexpr bool is_float8(DType d) { return d >= DType::float8_e4m3fn && d <= DType::float8_e8m0fnu; }
constexpr bool is_barebones_unsigned(DType d) { return d >= DType::uint16 && d <= DType::uint64; }
constexpr bool is_reduced_float(DType d) { return d == DType::float16 || d == DType::bfloat16; }
bool is_signed(DType d);

std::string_view name(DType d);                            // "float32", "bool"
std::optional<DType> dtype_from_name(std::string_view s);  // also "torch.float32", "float", "half", "long", ...
int torch_number(DType d);                                 // c10::ScalarType
std::optional<DType> dtype_from_torch_number(int number);

// PyTorch's promotion of two dtypes; a UserError where PyTorch refuses (float8, wide unsigned).
DType promote_types(DType a, DType b);
// May a value of `from` be written into `to` by an in-place or out= operator?
bool can_cast(DType from, DType to);
// The complex type's component type; the dtype itself otherwise.
DType to_real(DType d);
DType default_dtype();  // float32 unless set, per process
void set_default_dtype(DType d);

template <class T>
struct dtype_of;
#define X(name, type, category, number)         \
  template <>                                   \
  struct dtype_of<type> {                       \
    static constexpr DType value = DType::name; \
  };
CALQUE_DTYPES(X)
#undef X
template <>
struct dtype_of<bool> {  // what users write; kernels are given Bool
  static constexpr DType value = DType::bool_;
};
template <class T>
inline constexpr DType dtype_v = dtype_of<T>::value;

// std::is_integral and std::is_arithmetic of element types: Bool counts as bool does there.
template <class T>
inline constexpr bool is_integral_type = std::is_integral_v<T> || std::is_same_v<T, Bool>;
template <class T>
inline constexpr bool is_arithmetic_type = std::is_arithmetic_v<T> || std::is_same_v<T, Bool>;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls fn(TypeTag<T>{}) with the C++ type of `d`.
template <class F>
decltype(auto) dispatch(DType d, F&& fn) {
  switch (d) {
#define X(name, type, category, number) \
  case DType::name: return fn(TypeTag<type>{});
    CALQUE_DTYPES(X)
#undef X
  }
  __builtin_unreachable();
}

}  // namespace calque
