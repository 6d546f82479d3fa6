// The gradients of normalisation, and of its gradients.
#pragma once

#include "calque/op/gradient.h"

namespace calque::gradient {

TensorVector of_layer_norm(const Gradients& g);           // input, weight, bias
TensorVector of_layer_norm_backward(const Gradients& g);  // grad_out, input, weight
TensorVector of_batch_norm(const Gradients& g, bool training);
TensorVector of_batch_norm_backward(const Gradients& g);
TensorVector of_group_norm(const Gradients& g);

}  // namespace calque::gradient
