// Normalisation: layer, RMS, batch and group norm, forward and (layer, group, batch) backward. 16-bit floats compute in
// float32. Inputs may have any strides; outputs are laid out as the shape rules say.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// Over the last dimensions, `n` elements each. weight, bias, mean and rstd may be undefined.
void layer_norm(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias, double eps, const Tensor& out,
                const Tensor& mean, const Tensor& rstd);
void rms_norm(const Tensor& input, int64_t n, const Tensor& weight, double eps, const Tensor& out, const Tensor& rstd);
// Undefined gradients are not computed.
void layer_norm_backward(const Tensor& grad, const Tensor& input, int64_t n, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias);

// y = (x - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c], channels in dimension 1.
void batch_norm_inference(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                          const Tensor& var, double eps, const Tensor& out);
// Statistics of the batch; running ones, where defined, are moved by momentum.
void batch_norm_training(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                         const Tensor& save_invstd);
void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& running_mean,
                         const Tensor& running_var, const Tensor& save_mean, const Tensor& save_invstd, bool train,
                         double eps, const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias);

// input of N x C x HxW elements, contiguous or channels-last; mean and rstd are N x groups.
void group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n, int64_t c, int64_t hw,
                int64_t groups, double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd);
void group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, int64_t n, int64_t c, int64_t hw, int64_t groups, const Tensor& grad_input,
                         const Tensor& grad_weight, const Tensor& grad_bias);

}  // namespace calque::kernel
