// How a part is checkpointed (grad/checkpoint.h).
#pragma once

namespace calque {

struct CheckpointingOptions {
  // As PyTorch's first form: the part is a node of its own, and a pass inside of the pass goes back through it. Gradients of
  // gradients and `grad` do not go through it, and one of the inputs must want a gradient.
  bool use_reentrant = false;
  bool preserve_rng_state = true;  // random numbers are drawn again
  bool early_stop = true;         // computing again ends with the last tensor that is needed; not where use_reentrant is set
  bool check_determinism = true;  // UserError when the second time keeps other tensors than the first; likewise
};

}  // namespace calque
