// Attention with linear biases (ALiBi): instead of positions, scores sink with the distance of the key, by another slope for each
// head. What is added to the scores is the product of the two below.
#pragma once

#include <cstdint>

#include "calque/op/tensor.h"

namespace calque {

Tensor alibi_slopes(int64_t heads);  // [heads]
// Positions of the keys among those that are no padding, [keys] or [batch, 1, 1, keys]: a softmax does not see that a row of scores
// has no zero. UserError for a mask that is not [batch, keys].
Tensor alibi_positions(const Tensor& embeds, const Tensor& attention_mask, const SymInt& past);

}  // namespace calque
