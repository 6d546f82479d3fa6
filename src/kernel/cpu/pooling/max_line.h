// Maxima along one line of a max pooling's output, one version for each instruction set.
#pragma once

#include <cstdint>

#include "calque/base/half.h"

namespace calque::kernel {

// What a line of the output sees of a plane whose lines lie contiguous.
template <class T>
struct MaxLine {
  const T* plane;
  int64_t line, length;                     // from one line of the plane to the next, and how long one is
  int64_t begin, end, step;                 // the lines that it looks at: at least one
  int64_t taps, stride, padding, dilation;  // along a line
};

// The maxima of `count` windows and where they are in the plane, as if its lines were `length` apart: the first of equal ones, NaN before
// all numbers, the last of several. The plane has fewer than 2^31 numbers.
struct MaxLineKernels {
  void (*floats)(const MaxLine<float>& of, int64_t count, float* out, int64_t* at);
  void (*bfloats)(const MaxLine<BFloat16>& of, int64_t count, BFloat16* out, int64_t* at);
};

}  // namespace calque::kernel
