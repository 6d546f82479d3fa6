// The gradient of scaled dot product attention, from the logarithm of each row's sum that the forward pass left: the weights are
// computed again in blocks, the matrix of scores is never held.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// All of (batch, heads, length, width); key and value may have fewer heads, each shared by as many neighbouring query heads. mask is
// added to the scores, broadcast, and may be undefined. Sizes are not checked.
struct AttentionBackward {
  TensorBase grad_out, query, key, value, out, logsumexp, mask;
  bool causal = false;
  double scale = 1;
  TensorBase grad_query, grad_key, grad_value;
};
void attention_backward(const AttentionBackward& problem);

}  // namespace calque::kernel
