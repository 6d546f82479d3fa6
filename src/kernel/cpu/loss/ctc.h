// Connectionist temporal classification: the forward pass.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// log_probs [T, N, C]; targets [N, S] or all labels in a row; output [N], log_alpha [N, T, 2 * longest target + 1].
void ctc_loss(const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths, IntList target_lengths,
              int64_t blank, const TensorBase& output, const TensorBase& log_alpha);

}  // namespace calque::kernel
