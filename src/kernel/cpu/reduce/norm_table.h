// What norm.simd.cpp exports per instruction set, by storage type: float32, float64, bfloat16, float16. Parameters and
// statistics come in the compute type.
#pragma once

#include <cstdint>

namespace calque::kernel {

struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: sum of squared deviations
};

struct NormRow {
  void (*moments)(const void* x, int64_t n, Moments& state);  // folds the run in
  double (*mean_square)(const void* x, int64_t n);
  // y = (x - mean) * rstd * weight + bias; weight and bias may be null.
  void (*normalize)(const void* x, int64_t n, double mean, double rstd, const void* weight, const void* bias, void* y);
  // y = (x - center) * scale + shift with one of each for the run, and with one per element.
  void (*affine)(const void* x, int64_t n, double center, double scale, double shift, void* y);
  void (*affine_each)(const void* x, int64_t n, const void* center, const void* scale, const void* shift, void* y);
};

}  // namespace calque::kernel
