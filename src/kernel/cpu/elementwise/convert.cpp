#include "kernel/cpu/elementwise/convert.h"

#include "kernel/cpu/elementwise/convert_table.h"
#include "kernel/cpu/simd/isa.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ConvertRow, convert_table)

float decode_float8(Float8E4M3FN x) { return static_cast<float>(x); }
float decode_float8(Float8E5M2 x) { return static_cast<float>(x); }
float decode_float8(Float8E4M3FNUZ x) { return static_cast<float>(x); }
float decode_float8(Float8E5M2FNUZ x) { return static_cast<float>(x); }
float decode_float8(Float8E8M0FNU x) { return static_cast<float>(x); }
template <class T>
T encode_float8(float x) {
  return T(x);
}
template Float8E4M3FN encode_float8(float x);
template Float8E5M2 encode_float8(float x);
template Float8E4M3FNUZ encode_float8(float x);
template Float8E5M2FNUZ encode_float8(float x);
template Float8E8M0FNU encode_float8(float x);

LoadFn load_fn(DType d, Compute c) { return convert_table()[static_cast<size_t>(d)].load[static_cast<size_t>(c)]; }
StoreFn store_fn(Compute c, DType d) { return convert_table()[static_cast<size_t>(d)].store[static_cast<size_t>(c)]; }
NormalizeFn normalize_fn(DType d) { return convert_table()[static_cast<size_t>(d)].normalize; }

}  // namespace calque::kernel
