// Reductions over any set of dimensions: one engine that walks strided memory and hands runs (along the reduced
// dimensions) or tiles (many outputs side by side) to a table of small loops. Sums are made of short float blocks that are
// added up in double, so their error hardly grows with the length. Results depend on the thread count alone.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

enum class Reduction : uint8_t {
  sum,
  nansum,
  mean,
  prod,
  amax,
  amin,
  argmax,
  argmin,
  all,
  any,
  count_nonzero,
  norm_zero,
  norm_one,
  norm_two,
  norm_p,
  norm_max,
  norm_min,
  variance,
  count
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
