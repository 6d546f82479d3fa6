// The gradients of normalisation by plain loops in float64: where float32 overflows.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

void layer_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, int64_t n, const TensorBase& mean,
                                 const TensorBase& rstd, const TensorBase& weight, const TensorBase& grad_input,
                                 const TensorBase& grad_weight, const TensorBase& grad_bias);
void group_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& mean,
                                 const TensorBase& rstd, const TensorBase& weight, int64_t n, int64_t c, int64_t hw,
                                 int64_t groups, const TensorBase& grad_input, const TensorBase& grad_weight,
                                 const TensorBase& grad_bias);
void batch_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& weight,
                                 const TensorBase& running_mean, const TensorBase& running_var, const TensorBase& save_mean,
                                 const TensorBase& save_invstd, bool train, double eps, const TensorBase& grad_input,
                                 const TensorBase& grad_weight, const TensorBase& grad_bias);

}  // namespace calque::kernel
