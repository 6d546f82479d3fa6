// Reductions over any set of dimensions: one engine that walks strided memory and hands runs (along the reduced
// dimensions) or tiles (many outputs side by side) to a table of small loops. Sums are made of short float blocks that are
// added up in double, so their error hardly grows with the length. Results depend on the thread count alone.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// One list: name, the table that has its loops (SUM or EXTREME, compiled apart) and its rows there.
// clang-format off
#define CALQUE_REDUCTION(X)                            \
  X(sum, SUM, ALL(Plain, nothing))                     \
  X(nansum, SUM, FLOATS(NanAsZero, nothing))           \
  X(mean, SUM, FLOATS(Plain, divide))                  \
  X(prod, SUM, PRODUCT)                                \
  X(amax, EXTREME, BEST(Itself, true))                 \
  X(amin, EXTREME, BEST(Itself, false))                \
  X(argmax, EXTREME, ARG(true))                        \
  X(argmin, EXTREME, ARG(false))                       \
  X(all, EXTREME, BEST(Truth, false))                  \
  X(any, EXTREME, BEST(Truth, true))                   \
  X(count_nonzero, SUM, ALL(NonZero, nothing))         \
  X(norm_zero, SUM, FLOATS(NonZero, nothing))          \
  X(norm_one, SUM, FLOATS(Absolute, nothing))          \
  X(norm_two, SUM, FLOATS(Square, root))               \
  X(norm_p, SUM, FLOATS(Power, root_p))                \
  X(norm_max, EXTREME, BEST_FLOATS(Magnitude, true))   \
  X(norm_min, EXTREME, BEST_FLOATS(Magnitude, false))  \
  X(variance, SUM, VARIANCE)
// Both tables have the list's order: each has its own rows, and gaps where the other one has rows.
#define CALQUE_REDUCTION_ROWS(name, table, rows) table(rows),
#define CALQUE_NO_REDUCTION_ROWS(...) ReduceRow{}, ReduceRow{}, ReduceRow{}
// clang-format on

enum class Reduction : uint8_t {
#define X(name, table, rows) name,
  CALQUE_REDUCTION(X)
#undef X
};

struct ReduceParameters {
  double p = 2;       // norm_p: the exponent; variance: the correction
  bool root = false;  // variance: the standard deviation instead
  int64_t count = 0;  // elements behind one output, filled in by reduce()
};

// Reduces the dimensions of `self` whose bits are set. `out` has the kept dimensions, with or without the reduced ones as 1.
// Elements are brought to `common` first (rounded, wrapped) and accumulated in a wider type. argmax and argmin give the
// position in the reduced dimensions, in row-major order, to `second`; variance gives the mean to it. Either of `out` and
// `second` may be undefined.
void reduce(Reduction fn, DType common, const TensorBase& self, uint64_t dims, const TensorBase& out,
            const TensorBase& second = {}, ReduceParameters parameters = {});

}  // namespace calque::kernel
