// Weights of products laid out once as the tiles of this machine read them, so that a product packs nothing: float32, for any number
// of rows. From 25 rows on the sums are those of gemm(), to the last bit.
#pragma once

#include <cstdint>
#include <string>

namespace calque::kernel {

// c[m, n] = a[m, k] @ b[k, n] + bias[n]; a's rows along k, c contiguous.
struct PackedWeights {
  int64_t n = 0, k = 0;
  const float* data = nullptr;
};

int64_t packed_numbers(int64_t n, int64_t k);
// What the order of the numbers depends on, in words: packed weights fit where these are the same.
std::string packed_layout();
// Strides in elements.
void pack_weights(int64_t n, int64_t k, const float* b, int64_t b_row, int64_t b_col, float* packed);
void multiply_packed(int64_t m, const float* a, int64_t a_row, const PackedWeights& b, const float* bias,
                     int64_t bias_stride, float* c);

}  // namespace calque::kernel
