// The passes by themselves; plan_passes() has them in order.
#pragma once

#include "calque/run/passes.h"

namespace calque::run {

// Calls whose result nobody uses go.
bool remove_unused(PassInput& input);
// Equal calls are made once (graph/passes.h).
bool share_equal_calls(PassInput& input);
// What depends on the state and on literals alone is computed now. What the graph writes, returns or draws at random is not.
bool fold_state(PassInput& input);
// Batch norms of inference behind a convolution that nobody else reads go into its weights and bias.
bool fold_batch_norm(PassInput& input);
// Attention that was written out becomes one call of a submodule with its graph (run/attention_call.h).
bool find_attention(PassInput& input);
// Pointwise calls of the same sizes, of which each result feeds the next ones alone, become one call of a submodule with their graph
// (run/tile_call.h). A call moves to the place of the chain's last one: not past a write of what it reads, nor past an impure call.
bool fuse_pointwise(PassInput& input);
// Weights of products (float32, state that nobody writes) are laid out once as the kernel reads them, as attributes that the nodes'
// meta names.
bool pack_weights(PassInput& input);

}  // namespace calque::run
