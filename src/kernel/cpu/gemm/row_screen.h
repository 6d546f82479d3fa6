// Which row of a matrix has the largest product with a vector, without reading the whole matrix: a copy of its rows in
// 8 bits says which few can be it, and those are computed. The answer is certain or there is none: bounds on the error of
// the copy, of the arithmetic here, and of any order in which float32 may be summed are part of it.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

class RowScreen {
 public:
  // weight: float32 [rows, size], contiguous, with data; bias: none, or float32 [rows]. Both are kept.
  RowScreen(const TensorBase& weight, const TensorBase& bias);

  // Whether it was made of these, as they are now.
  bool is_of(const TensorBase& weight, const TensorBase& bias) const;

  // Writes a number for each row. The largest of them is the largest of weight * x + bias, in the same row; the others may be
  // approximate. False, and `out` means nothing, where float32 cannot tell rows apart or too many rows come close.
  bool scores(const float* x, float* out) const;

 private:
  TensorBase weight_, bias_, rows_in_8_bits_;
  int64_t rows_, size_, stride_;
  std::vector<float> scale_;  // of a row in 8 bits
  std::vector<float> reach_;  // how far its product can be from the true one, for an x of norm 1
  uint32_t weight_version_, bias_version_ = 0;
  float bias_reach_ = 0;
  float longest_ = 0;  // the largest norm of a row in 8 bits; NaN if one has such a number
};

// One version for each instruction set. `stride` is a multiple of 64; what a row or `x` has beyond its size is zeros.
struct RowScreenKernels {
  // The row in 8 bits; its norm, and that of the difference, as multiples of the scale.
  void (*pack)(const float* row, int64_t size, int8_t* out, int64_t stride, float& scale, float& norm, float& difference);
  void (*products)(const int8_t* rows, int64_t count, int64_t stride, const int16_t* x, const float* scale, float* out);
};

}  // namespace calque::kernel
