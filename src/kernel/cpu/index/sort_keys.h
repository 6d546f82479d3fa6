// Keys whose unsigned order is the sorting order of a dtype: NaNs equal and last, both zeros equal, so that a stable sort
// of the keys is one of the values. 64-bit dtypes have 64-bit keys, all others 32-bit ones.
#pragma once

#include <cstdint>

#include "calque/tensor/dtype.h"

namespace calque::kernel {

// n elements, `stride` bytes apart, to keys; `flip` (0 or all ones) reverses the order.
using KeyFn = void (*)(const void* source, int64_t stride, void* keys, int64_t n, uint64_t flip);

struct SortTable {
  KeyFn keys[20];  // by dtype; null where there is no order
  // The first position from `begin` on whose key is below the limit, or n.
  int64_t (*next_below_32)(const uint32_t* keys, int64_t begin, int64_t n, uint32_t limit);
  int64_t (*next_below_64)(const uint64_t* keys, int64_t begin, int64_t n, uint64_t limit);
};
static_assert(sizeof(all_dtypes) == 20);

// Significant bits of a dtype's keys.
constexpr int key_bits(DType d) { return d == DType::bool_ ? 1 : static_cast<int>(item_size(d)) * 8; }

}  // namespace calque::kernel
