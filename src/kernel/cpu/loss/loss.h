// Loss functions: the elementwise ones, and negative log likelihood by class index.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/element_loop.h"

namespace calque::kernel {

enum class Loss : uint8_t { mse, smooth_l1, huber, bce, bce_logits, soft_margin };

// out = loss(self, target) element by element, computed as out's dtype. `parameter`: beta or delta.
void elementwise_loss(Loss fn, const TensorBase& self, const TensorBase& target, double parameter, const TensorBase& out);
// out = d loss / d self * grad, grad broadcast; times `scale` (1 / numel for a mean).
void elementwise_loss_backward(Loss fn, const TensorBase& grad, const TensorBase& self, const TensorBase& target,
                               double parameter, double scale, const TensorBase& out);
// Logits with weights: weight and pos_weight may be undefined, both broadcast.
void bce_logits(const TensorBase& self, const TensorBase& target, const TensorBase& weight, const TensorBase& pos_weight,
                const TensorBase& out);

// self [N, C, S] (S may be 1), target [N, S] of int64 or uint8; all contiguous views of the caller's making.
// reduction: 0 none, 1 mean, 2 sum. `output` is [N, S] or one element, total_weight one element.
struct NllShape {
  int64_t n, classes, spatial;
};
void nll_loss(const TensorBase& self, const TensorBase& target, const TensorBase& weight, NllShape shape, int64_t reduction,
              int64_t ignore_index, const TensorBase& output, const TensorBase& total_weight);
void nll_loss_backward(const TensorBase& grad, const TensorBase& target, const TensorBase& weight, NllShape shape,
                       int64_t reduction, int64_t ignore_index, const TensorBase& total_weight,
                       const TensorBase& grad_input);

}  // namespace calque::kernel
