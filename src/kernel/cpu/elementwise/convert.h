// Element conversions between storage dtypes and the few types that kernels compute in. A kernel loop only ever sees
// contiguous runs of a compute type; gathering strided memory, widening, rounding and scattering happen here.
#pragma once

#include <cstdint>

#include "calque/tensor/dtype.h"

namespace calque::kernel {

enum class Compute : uint8_t { f32, f64, i64, c128 };

// The type that values of this dtype are computed in. float16, bfloat16 and float8 compute in float32, integers and
// bool in int64 (wrapping on the way back), complex in complex128.
constexpr Compute compute_type(DType d) {
  if (d == DType::float64) return Compute::f64;
  if (is_floating(d)) return Compute::f32;
  if (is_complex(d)) return Compute::c128;
  return Compute::i64;
}
constexpr int64_t compute_size(Compute c) { return c == Compute::f32 ? 4 : c == Compute::c128 ? 16 : 8; }
template <class T>
inline constexpr Compute compute_of = Compute::f32;
template <>
inline constexpr Compute compute_of<double> = Compute::f64;
template <>
inline constexpr Compute compute_of<int64_t> = Compute::i64;

// n elements of dtype d, `stride` bytes apart, into contiguous compute type c.
using LoadFn = void (*)(const void* src, int64_t stride, void* dst, int64_t n);
// Contiguous compute type c into n elements of dtype d, `stride` bytes apart.
using StoreFn = void (*)(const void* src, void* dst, int64_t stride, int64_t n);
LoadFn load_fn(DType d, Compute c);
StoreFn store_fn(Compute c, DType d);
// Makes n compute values representable in d (rounds to float16, wraps to int8, ...); null when they already are.
using NormalizeFn = void (*)(void* values, int64_t n);
NormalizeFn normalize_fn(DType d);

}  // namespace calque::kernel
