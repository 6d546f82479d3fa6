// Connectionist temporal classification.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// log_probs [T, N, C]; targets [N, S] or all labels in a row; output [N], log_alpha [N, T, 2 * longest target + 1].
void ctc_loss(const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths, IntList target_lengths,
              int64_t blank, const TensorBase& output, const TensorBase& log_alpha);

// The gradient of log_probs: `grad` is [N], `loss` and log_alpha are the forward's results. With zero_infinity what has no way to its
// targets has no gradient.
void ctc_loss_backward(const TensorBase& grad, const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths,
                       IntList target_lengths, const TensorBase& loss, const TensorBase& log_alpha, int64_t blank,
                       bool zero_infinity, const TensorBase& out);

}  // namespace calque::kernel
