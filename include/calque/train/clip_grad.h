// Gradients made smaller before a step: torch.nn.utils.clip_grad_norm_ and clip_grad_value_. They change what grad_of gives;
// parameters without a gradient are left out.
#pragma once

#include <vector>

#include "calque/op/tensor.h"

namespace calque {

// The norm of all tensors together: that of their norms. 0 when there are none.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2.0, bool error_if_nonfinite = false);
// Scales the gradients so that their total norm is at most max_norm, and gives the norm that they had.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
// Each element into [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace calque
