// Matrix products of tensors' memory, any dtype that has one: picks the typed gemm (kernel/cpu/gemm/gemm.h). The caller says
// where the operands lie; shapes are not checked here.
#pragma once

#include <cstdint>

#include "calque/base/small_vector.h"
#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// c[m, n] = alpha * a[m, k] @ b[k, n] + beta * c + bias[n], over batches; strides in elements. Numbers alpha and beta are
// brought to the type of the sums (integers: truncated).
struct Product {
  DType dtype = DType::float32;
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  const void* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  void* c = nullptr;
  int64_t c_row = 0, c_col = 0;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  Scalar alpha = 1;
  Scalar beta = 0;
  using Batch = SmallVector<int64_t, 6>;
  Batch batch, a_batch, b_batch, c_batch;  // outermost first
};

bool has_product(DType dtype);
void multiply(const Product& product);

}  // namespace calque::kernel
