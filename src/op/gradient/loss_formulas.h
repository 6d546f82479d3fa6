// Gradients of losses that are written with other operators, and gradients of the losses' gradients.
#pragma once

#include "op/gradient/formulas.h"

namespace calque::gradient {

Tensor bce_target(const Gradients& g);
Tensor bce_logits_self(const Gradients& g);
Tensor bce_logits_target(const Gradients& g);
Tensor bce_twice_given(const Gradients& g);
Tensor bce_twice_self(const Gradients& g);
Tensor bce_twice_target(const Gradients& g);
Tensor mse_twice(const Gradients& g, std::string_view of);
Tensor smooth_l1_twice(const Gradients& g);
Tensor huber_twice(const Gradients& g);
Tensor huber_twice_given(const Gradients& g);
Tensor soft_margin_twice(const Gradients& g);
Tensor soft_margin_twice_given(const Gradients& g);

}  // namespace calque::gradient
