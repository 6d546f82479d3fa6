// Normalisation: layer, RMS, batch and group norm, forward and (layer, group, batch) backward. 16-bit floats compute in
// float32. Inputs may have any strides; outputs are laid out as the shape rules say.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Over the last dimensions, `n` elements each. weight, bias, mean and rstd may be undefined.
void layer_norm(const TensorBase& input, int64_t n, const TensorBase& weight, const TensorBase& bias, double eps,
                const TensorBase& out, const TensorBase& mean, const TensorBase& rstd);
void rms_norm(const TensorBase& input, int64_t n, const TensorBase& weight, double eps, const TensorBase& out,
              const TensorBase& rstd);
// Undefined gradients are not computed.
void layer_norm_backward(const TensorBase& grad, const TensorBase& input, int64_t n, const TensorBase& mean,
                         const TensorBase& rstd, const TensorBase& weight, const TensorBase& grad_input,
                         const TensorBase& grad_weight, const TensorBase& grad_bias);

// y = (x - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c], channels in dimension 1.
void batch_norm_inference(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, const TensorBase& mean,
                          const TensorBase& var, double eps, const TensorBase& out);
// Statistics of the batch; running ones, where defined, are moved by momentum.
void batch_norm_training(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                         const TensorBase& running_mean, const TensorBase& running_var, double momentum, double eps,
                         const TensorBase& out, const TensorBase& save_mean, const TensorBase& save_invstd);
void batch_norm_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& weight,
                         const TensorBase& running_mean, const TensorBase& running_var, const TensorBase& save_mean,
                         const TensorBase& save_invstd, bool train, double eps, const TensorBase& grad_input,
                         const TensorBase& grad_weight, const TensorBase& grad_bias);

// input of N x C x HxW elements, contiguous or channels-last; mean and rstd are N x groups.
void group_norm(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, int64_t n, int64_t c, int64_t hw,
                int64_t groups, double eps, const TensorBase& out, const TensorBase& mean, const TensorBase& rstd);
void group_norm_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& mean, const TensorBase& rstd,
                         const TensorBase& weight, int64_t n, int64_t c, int64_t hw, int64_t groups,
                         const TensorBase& grad_input, const TensorBase& grad_weight, const TensorBase& grad_bias);

}  // namespace calque::kernel
