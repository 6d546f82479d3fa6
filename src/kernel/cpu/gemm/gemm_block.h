// The serial, instruction-set specific part of matrix multiplication, behind one table of functions per (storage type,
// instruction set). gemm.cpp decides the orientation, splits the work over threads and calls these on parts of the output.
#pragma once

#include <cstdint>

#include "calque/base/half.h"

namespace calque {

/// The type that products of S are summed in.
template <class S>
struct AccumulateType {
  using type = float;
};
template <>
struct AccumulateType<double> {
  using type = double;
};
template <class S>
using Accumulate = typename AccumulateType<S>::type;

/// The columns of a convolution, never stored: column j is the patch of the image under output position j, row p of it the
/// number at channel and tap p. Positions outside the image are 0.
template <class S>
struct Patches {
  const S* image;  // of one batch item and group
  int64_t channel_stride;
  int64_t size[3], stride[3];    // of the image: depth, height, width; the width's stride is 1
  int64_t out_size[3];           // output positions
  int64_t step[3];               // image positions from one output position to the next
  int64_t taps[3];               // kernel size
  const int64_t* tap_offset[3];  // image position of each tap for output position 0
  // Where row p of a patch lies from the patch's first number on, for all p, if the patches of one output line lie next to each
  // other (the width's step is 1), nothing is outside the image and output lines are multiples of 16; null otherwise.
  const int32_t* row_offset = nullptr;
};

/// out[i, j] = alpha * sum_k rows[i, k] * cols[k, j] + beta * out[i, j] + bias[i, j], all strides in elements and free.
/// `rows` is read fastest when its k stride is 1 (numbers are broadcast from it in place), `cols` is copied into panels.
template <class S>
struct GemmPart {
  int64_t row_count, col_count, k;
  const S* rows;
  int64_t rows_row, rows_k;
  const S* cols;
  int64_t cols_k, cols_col;
  S* out;
  int64_t out_row, out_col;
  const S* bias;  // null for none
  int64_t bias_row, bias_col;
  Accumulate<S> alpha, beta;
  // The operands of the part that comes after this one, of the same shape and strides; null if none. Only fetched.
  const S* next_rows = nullptr;
  const S* next_cols = nullptr;
  const Patches<S>* patches = nullptr;  // in place of cols
  int64_t first_patch = 0;
  // In place of cols: what `pack` made of them. Then the output's column stride is 1, alpha 1 and beta 0.
  const S* packed = nullptr;
};

template <class S>
struct GemmKernels {
  /// Any shape. `scratch` has `scratch_bytes` bytes, 64-byte aligned.
  void (*block)(const GemmPart<S>&, void* scratch);
  int64_t scratch_bytes;
  /// Few columns (col_count <= dot_columns), both operands with k stride 1: one pass over `rows`, no copy of it.
  /// `packed_cols` is what pack_dot made of `cols`, dot_bytes(k) bytes for each column.
  void (*pack_dot)(const GemmPart<S>&, void* packed_cols);
  void (*dot)(const GemmPart<S>&, const void* packed_cols);
  int64_t dot_columns;
  /// Few rows (row_count <= stream_rows), `cols` with column stride 1: streams the rows of `cols`. Scratch as for block.
  void (*stream)(const GemmPart<S>&, void* scratch);
  int64_t stream_rows;
  /// All patches of one channel times its own kernel, plus bias: depthwise convolution. Scratch: depthwise_numbers().
  void (*depthwise)(const Patches<S>&, const S* weight, Accumulate<S> bias, S* out, int64_t out_col, Accumulate<S>* scratch);
  int64_t (*depthwise_numbers)(const Patches<S>&);
  /// All of `cols` as panels of `panel_columns` columns, one after another, the last filled up with zeros. Null where numbers are
  /// summed in another type than they are stored in.
  void (*pack)(const GemmPart<S>&, S* packed);
  int64_t panel_columns;
};

/// bfloat16 by instructions that multiply pairs. k must not be 0; scratch as scratch_size(k) says.
struct PairKernels {
  void (*block)(const GemmPart<BFloat16>&, void* scratch);
  int64_t (*scratch_size)(int64_t k);
};

inline int64_t dot_stride(int64_t k) { return (k + 31) / 32 * 32; }

#define CALQUE_DECLARE_GEMM(ns)                     \
  namespace ns {                                    \
  extern const GemmKernels<float> gemm_float;       \
  extern const GemmKernels<double> gemm_double;     \
  extern const GemmKernels<BFloat16> gemm_bfloat16; \
  extern const GemmKernels<Half> gemm_half;         \
  }
CALQUE_DECLARE_GEMM(generic)
#if defined(CALQUE_HAVE_ISA_AVX2)
CALQUE_DECLARE_GEMM(avx2)
CALQUE_DECLARE_GEMM(avx512)
namespace avx512 {
extern const PairKernels gemm_amx;          // where has_amx_bf16()
extern const PairKernels gemm_avx512_bf16;  // where has_avx512_bf16()
}  // namespace avx512
#endif
#undef CALQUE_DECLARE_GEMM

}  // namespace calque
