// What norm_backward.simd.cpp exports per instruction set, by storage type: float32, float64, bfloat16, float16. Weights and sums of
// columns come in the compute type.
#pragma once

#include <cstdint>

namespace calque::kernel {

struct NormBackwardRow {
  // The sums of grad * weight * (x - center) and of grad * weight over a run; the weight may be null.
  void (*sums)(const void* grad, const void* x, const void* weight, int64_t n, double center, double& with_x, double& alone);
  // to = grad * weight * scale + slope * (x - center) + rest
  void (*gradient)(const void* grad, const void* x, const void* weight, int64_t n, double scale, double center, double slope,
                   double rest, void* to);
  // with_x += grad * (x - center) * scale and alone += grad, element by element.
  void (*columns)(const void* grad, const void* x, int64_t n, double center, double scale, void* with_x, void* alone);
};

}  // namespace calque::kernel
