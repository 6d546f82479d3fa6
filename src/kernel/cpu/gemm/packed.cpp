#include "kernel/cpu/gemm/packed.h"

#include "kernel/cpu/gemm/gemm_parts.h"
#include "kernel/cpu/scratch.h"
#include "kernel/cpu/simd/isa.h"

namespace calque::kernel {

int64_t packed_numbers(int64_t n, int64_t k) {
  const int64_t width = gemm_kernels<float>().panel_columns;
  return (n + width - 1) / width * width * k;
}

std::string packed_layout() {
  return "float32 in panels of " + std::to_string(gemm_kernels<float>().panel_columns) + " columns, " +
         pick<const char*>("generic", "avx2", "avx512");
}

void pack_weights(int64_t n, int64_t k, const float* b, int64_t b_row, int64_t b_col, float* packed) {
  const GemmKernels<float>& kernel = gemm_kernels<float>();
  parallel_pieces(1, n, kernel.panel_columns, kernel.panel_columns * k, [&](int64_t, int64_t begin, int64_t end) {
    GemmPart<float> part{};
    part.col_count = end - begin;
    part.k = k;
    part.cols = b + begin * b_col;
    part.cols_k = b_row;
    part.cols_col = b_col;
    kernel.pack(part, packed + begin * k);
  });
}

void multiply_packed(int64_t m, const float* a, int64_t a_row, const PackedWeights& b, const float* bias,
                     int64_t bias_stride, float* c) {
  if (m <= 0 || b.n <= 0) return;
  const GemmKernels<float>& kernel = gemm_kernels<float>();
  const auto bytes = static_cast<size_t>(kernel.scratch_bytes);
  parallel_pieces(1, b.n, kernel.panel_columns, kernel.panel_columns * b.k * m, [&](int64_t, int64_t begin, int64_t end) {
    GemmPart<float> part{m, end - begin, b.k, a, a_row, 1, nullptr, 0, 0, c + begin, b.n, 1, nullptr, 0, 1, 1, 0};
    if (bias != nullptr) {
      part.bias = bias + begin * bias_stride;
      part.bias_col = bias_stride;
    }
    part.packed = b.data + begin * b.k;
    kernel.block(part, scratch_bytes(Scratch::block, bytes));
  });
}

}  // namespace calque::kernel
