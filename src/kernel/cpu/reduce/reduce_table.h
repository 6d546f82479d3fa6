// What reduce*.simd.cpp exports per instruction set: for each reduction and compute type the loops over one run, over a
// tile of neighbouring outputs, and what combines and finishes the accumulators.
// The accumulators of `width` outputs are `components` arrays of `width` numbers of at most 8 bytes; what they hold is the
// reduction's affair.
#pragma once

#include <cstdint>

#include "kernel/cpu/reduce/reduce.h"

namespace calque::kernel {

// Folds x[0..n) into one slot; `first` is the position of x[0] among the reduced elements.
using ReduceRunFn = void (*)(const void* x, int64_t n, int64_t first, void* state, int64_t slot, int64_t width,
                             const ReduceParameters& parameters);
// Folds rows x columns elements, `stride` elements from row to row, into the first `columns` slots.
using ReduceTileFn = void (*)(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t first, void* state,
                              int64_t width, const ReduceParameters& parameters);

// What memory holds where a loop reads it as it lies.
enum ReduceHeld : uint8_t { held_as_computed, held_bfloat16, held_float16, held_count };

struct ReduceRow {
  int components = 0;        // 0: there is no such form
  bool two_results = false;  // `finish` writes `second` too
  void (*start)(void* state, int64_t width) = nullptr;
  // By ReduceHeld. Null where the elements have to be converted first.
  ReduceRunFn run[held_count] = {};
  ReduceTileFn tile[held_count] = {};
  void (*merge)(void* into, const void* from, int64_t width) = nullptr;
  // `values` in the compute type; `second` int64 positions or, for the variance, means.
  void (*finish)(const void* state, int64_t width, const ReduceParameters& parameters, void* values, void* second) = nullptr;
};

constexpr int64_t reduce_tile_width = 512;  // columns in one tile at most

}  // namespace calque::kernel
