// Convolution and transposed convolution, forward, over one to three spatial dimensions, on raw memory. The image's patches
// are packed as the multiplication needs them, so no matrix of columns is ever stored. Sums are float32 (float64 for
// float64), rounded once. It does not check shapes: out_size is what the operator's shape rule says.
#pragma once

#include <cstdint>

#include "calque/base/half.h"

namespace calque {

/// Spatial arrays are depth, height, width; with fewer dimensions the leading ones stay at their defaults.
template <class T>
struct Convolution {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  int64_t in_size[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out_size[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};
  bool transposed = false;  // output_padding shows in out_size alone

  // Strides in elements: batch, channel, depth, height, width; of the weight, its own five dimensions in order: out, in / groups
  // (transposed: in, out / groups), depth, height, width.
  const T* in = nullptr;
  int64_t in_strides[5] = {};
  const T* weight = nullptr;
  int64_t weight_strides[5] = {};
  const T* bias = nullptr;  // null for none
  int64_t bias_stride = 1;
  T* out = nullptr;
  int64_t out_strides[5] = {};
};

/// T: float, double, BFloat16, Half.
template <class T>
void convolution(const Convolution<T>& problem);

}  // namespace calque
