// Resampling over one to three spatial dimensions of [n, c, ...]: nearest, linear, cubic, with or without antialiasing. Works
// dimension by dimension, the last one first, in float32 (float64 for float64).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

enum class Resample : uint8_t { nearest, nearest_exact, linear, cubic, linear_antialias, cubic_antialias };

// scales: the factors the caller asked for, depth, height, width (the leading ones unused); none means out size / in size.
using ResampleScales = std::array<std::optional<double>, 3>;
void resample(const TensorBase& input, int spatial, Resample mode, bool align_corners, const ResampleScales& scales,
              const TensorBase& out);
// The gradient: each input position gets from all output positions that read it, as much as they weigh it.
void resample_backward(const TensorBase& grad_output, int spatial, Resample mode, bool align_corners,
                       const ResampleScales& scales, const TensorBase& grad_input);

}  // namespace calque::kernel
