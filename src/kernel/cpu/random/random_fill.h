// What the random kernels share: the walk over an output in PyTorch's order, the dtypes they take, and the draws.
// PyTorch walks a strided output with the smallest stride innermost whatever the order of its dimensions, so a
// transposed tensor receives the same numbers at the same addresses; the walk here sorts likewise.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "calque/base/error.h"
#include "calque/base/small_vector.h"
#include "calque/tensor/generator.h"
#include "calque/tensor/tensor_base.h"

namespace calque {

// Dimensions of an output (and, beside it, of one input), innermost first, neighbours merged. Strides in elements.
struct FillWalk {
  SmallVector<int64_t, 6> sizes;
  SmallVector<int64_t, 6> out_strides;
  SmallVector<int64_t, 6> in_strides;
  int64_t numel = 1;
};

// `in`, when given, must broadcast to `out`. UserError when elements of `out` share memory.
FillWalk make_fill_walk(const TensorBase& out, const char* op, const TensorBase* in = nullptr);
// The same for the components of a complex output.
FillWalk make_component_walk(const TensorBase& out, const char* op);

// Calls row(out_offset, in_offset) for each innermost row, in order.
template <class Row>
void for_each_row(const FillWalk& walk, Row&& row) {
  if (walk.numel == 0) return;
  const size_t n = walk.sizes.size();
  SmallVector<int64_t, 6> index(n, 0);
  int64_t out = 0;
  int64_t in = 0;
  for (;;) {
    row(out, in);
    size_t d = 1;
    for (; d < n; ++d) {
      out += walk.out_strides[d];
      in += walk.in_strides[d];
      if (++index[d] < walk.sizes[d]) break;
      out -= walk.out_strides[d] * walk.sizes[d];
      in -= walk.in_strides[d] * walk.sizes[d];
      index[d] = 0;
    }
    if (d >= n) return;
  }
}

// Writes draw() to each element of `data`, in the walk's order.
template <class T, class Draw>
void fill(T* data, const FillWalk& walk, Draw&& draw) {
  const int64_t n = walk.sizes[0];
  const int64_t step = walk.out_strides[0];
  for_each_row(walk, [&](int64_t out, int64_t) {
    T* p = data + out;
    for (int64_t i = 0; i < n; ++i) p[i * step] = draw();
  });
}

template <class T>
inline constexpr bool is_half_like = std::same_as<T, Half> || std::same_as<T, BFloat16>;
template <class T>
inline constexpr bool is_kernel_float = std::floating_point<T> || is_half_like<T>;
template <class T>
inline constexpr bool is_wide_unsigned = std::same_as<T, uint16_t> || std::same_as<T, uint32_t> || std::same_as<T, uint64_t>;

// The type that a float dtype computes in.
template <class T>
using Compute = std::conditional_t<std::same_as<T, double>, double, float>;
// Bits of the significand, the implicit one included.
template <class T>
inline constexpr int significand_bits = std::numeric_limits<T>::digits;
template <>
inline constexpr int significand_bits<Half> = 11;
template <>
inline constexpr int significand_bits<BFloat16> = 8;

std::string short_text(double value);  // "0.5", "1e+06"
// UserError "OP: expected EXPECTED, found FOUND" unless `holds`.
void require(bool holds, const char* op, const char* expected, double found);
[[noreturn]] void refuse_dtype(const char* op, DType dtype, const char* expected);

template <class F>
void dispatch_floating(DType dtype, const char* op, F&& fn) {
  dispatch(dtype, [&](auto tag) {
    if constexpr (is_kernel_float<typename decltype(tag)::type>)
      fn(tag);
    else
      refuse_dtype(op, dtype, "float16, bfloat16, float32 or float64");
  });
}

// The floats, and the integers but for the wide unsigned ones; bool too when asked.
template <bool with_bool, class F>
void dispatch_numbers(DType dtype, const char* op, F&& fn) {
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_kernel_float<T> ||
                  (is_integral_type<T> && !is_wide_unsigned<T> && (with_bool || !std::same_as<T, Bool>)))
      fn(tag);
    else
      refuse_dtype(op, dtype,
                   with_bool ? "bool, uint8, int8 to int64 or a 16- to 64-bit float"
                             : "uint8, int8 to int64 or a 16- to 64-bit float");
  });
}

// A float64 result stored as T. Out of an integer's range the bits are those of x86's conversion, which PyTorch has.
template <class T>
T from_double(double value) {
  if constexpr (std::same_as<T, double>) {
    return value;
  } else if constexpr (is_kernel_float<T>) {
    return static_cast<T>(static_cast<float>(value));
  } else if constexpr (std::same_as<T, Bool>) {
    return value != 0;
  } else if constexpr (std::same_as<T, int64_t>) {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
  } else {
    return static_cast<T>(value > -0x1p31 - 1 && value < 0x1p31 ? static_cast<int32_t>(value)
                                                                : std::numeric_limits<int32_t>::min());
  }
}

inline Generator& or_default(Generator* generator) { return generator != nullptr ? *generator : default_generator(); }

// [0, 1): 24 bits of one draw, or 53 of two.
template <std::floating_point T>
T draw_unit(Generator& g) {
  if constexpr (std::same_as<T, double>)
    return static_cast<double>(g.random64() & ((1ULL << 53) - 1)) * 0x1p-53;
  else
    return static_cast<float>(g.random() & ((1U << 24) - 1)) * 0x1p-24F;
}

// The standard normal sample of the one-by-one path; sine and cosine of a pair, the sine kept for the next call.
double draw_normal(Generator& g);

}  // namespace calque
