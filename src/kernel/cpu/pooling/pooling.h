// Pooling over one to three spatial dimensions, forward and backward, of batched ([n, c, ...]) or unbatched ([c, ...])
// tensors of any strides. Which it is follows from `spatial`. Shapes are not checked here.
#pragma once

#include <cstdint>
#include <optional>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Depth, height, width; with fewer dimensions the leading ones stay at their defaults.
struct PoolWindow {
  int spatial = 2;
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
};
struct AverageRule {
  bool count_include_pad = true;
  std::optional<int64_t> divisor;
};

// Indices are positions in the input's spatial dimensions, flattened. NaN wins.
void max_pool(const TensorBase& input, const PoolWindow& window, const TensorBase& out, const TensorBase& indices);
void avg_pool(const TensorBase& input, const PoolWindow& window, const AverageRule& rule, const TensorBase& out);
void adaptive_max_pool(const TensorBase& input, int spatial, const TensorBase& out, const TensorBase& indices);
void adaptive_avg_pool(const TensorBase& input, int spatial, const TensorBase& out);

void max_pool_backward(const TensorBase& grad_output, const TensorBase& indices, int spatial, const TensorBase& grad_input);
void avg_pool_backward(const TensorBase& grad_output, const PoolWindow& window, const AverageRule& rule,
                       const TensorBase& grad_input);
void adaptive_avg_pool_backward(const TensorBase& grad_output, int spatial, const TensorBase& grad_input);

}  // namespace calque::kernel
