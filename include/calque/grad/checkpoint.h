// Checkpointing: a part of a model keeps its inputs instead of what it computes, and computes again when the pass comes back.
//
//   Tensor y = checkpoint([&](const TensorVector& x) { return TensorVector{layer(x[0])}; }, {x})[0];
#pragma once

#include <functional>
#include <string>

#include "calque/grad/autograd.h"

namespace calque {

struct CheckpointingOptions {
  // As PyTorch's first form: the part is a node of its own, and a pass inside of the pass goes back through it. Gradients of
  // gradients and `grad` do not go through it, and one of the inputs must want a gradient.
  bool use_reentrant = false;
  bool preserve_rng_state = true;  // random numbers are drawn again
  bool early_stop = true;         // computing again ends with the last tensor that is needed; not where use_reentrant is set
  bool check_determinism = true;  // UserError when the second time keeps other tensors than the first; likewise
};
using CheckpointedFunction = std::function<TensorVector(const TensorVector& inputs)>;
TensorVector checkpoint(const CheckpointedFunction& function, const TensorVector& inputs,
                        const CheckpointingOptions& options = {});
// The functions one after the other, in so many parts of which all but the last are checkpointed.
TensorVector checkpoint_sequential(const std::vector<CheckpointedFunction>& functions, size_t segments,
                                   const TensorVector& inputs, const CheckpointingOptions& options = {});

}  // namespace calque
