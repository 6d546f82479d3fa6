// What softmax.simd.cpp exports per instruction set, by storage type: float32, float64, bfloat16, float16.
#pragma once

#include <cstdint>

namespace calque::kernel {

struct SoftmaxRow {
  // One run of n; `scratch` holds n compute values (used by the 16-bit types only).
  void (*run)(const void* x, void* y, int64_t n, bool is_log, void* scratch);
  // n rows of `columns` neighbouring slices, `stride` elements from row to row.
  void (*tile)(const void* x, void* y, int64_t n, int64_t stride, int64_t columns, bool is_log);
  double (*logsumexp)(const void* x, int64_t n);
};

constexpr int64_t softmax_tile_width = 128;

}  // namespace calque::kernel
