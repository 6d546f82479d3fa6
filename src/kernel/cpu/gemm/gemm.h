// Matrix multiplication on raw memory: the one door through which linear, matmul, bmm, addmm and convolutions multiply.
//
// Any strides, any number of batch dimensions (stride 0 broadcasts), output rounded once. Sums are kept in float32 for
// float32, bfloat16 and float16, in float64 for float64; integers wrap. It splits the work over the thread pool itself and
// gives the same bits for the same thread count. It does not check shapes or aliasing: operators do.
#pragma once

#include <cstdint>
#include <type_traits>

#include "calque/base/half.h"

namespace calque {

template <class T>
struct Gemm {
  using Scale = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

  // c[m, n] = alpha * a[m, k] @ b[k, n] + beta * c + bias[n]; strides in elements. With beta 0 the old c is never read.
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 1;
  const T* b = nullptr;
  int64_t b_row = 0, b_col = 1;
  T* c = nullptr;
  int64_t c_row = 0, c_col = 1;
  const T* bias = nullptr;
  int64_t bias_stride = 1;
  Scale alpha = 1;
  Scale beta = 0;

  // Batch dimensions, outermost first; each pointer has batch_dims entries.
  int64_t batch_dims = 0;
  const int64_t* batch_sizes = nullptr;
  const int64_t* a_batch = nullptr;
  const int64_t* b_batch = nullptr;
  const int64_t* c_batch = nullptr;
};

/// T: float, double, BFloat16, Half, uint8_t, int8_t, int16_t, int32_t, int64_t.
template <class T>
void gemm(const Gemm<T>& problem);

}  // namespace calque
