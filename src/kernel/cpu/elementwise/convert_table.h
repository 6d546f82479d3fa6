// What convert.simd.cpp exports per instruction set. The float8 codecs are called, not inlined, so that the
// conversion loops stay free of shared inline code.
#pragma once

#include <type_traits>

#include "kernel/cpu/elementwise/convert.h"

namespace calque::kernel {

struct ConvertRow {
  LoadFn load[4];    // by Compute
  StoreFn store[4];  // by Compute
  NormalizeFn normalize;
};

template <class T>
struct RawComplex {
  T re, im;
};
template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<RawComplex<T>> = true;

float decode_float8(Float8E4M3FN x);
float decode_float8(Float8E5M2 x);
float decode_float8(Float8E4M3FNUZ x);
float decode_float8(Float8E5M2FNUZ x);
float decode_float8(Float8E8M0FNU x);
template <class T>
T encode_float8(float x);

}  // namespace calque::kernel
