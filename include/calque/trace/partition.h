// A joint graph (trace/joint.h) taken apart into its forward and its backward pass. What the backward pass needs of the forward is kept
// by it, or computed again: which of both, min_cut_rematerialization_partition chooses by what it costs.
//
//   Partition p = min_cut_rematerialization_partition(*joint.module, joint.num_forward);
//   Values all = p.forward->call(primals).to_items();  // the outputs, then what is kept
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/graph/graph_module.h"

namespace calque {

struct Partition {
  std::shared_ptr<GraphModule> forward;  // of the primals: the forward's outputs, then the kept values
  std::shared_ptr<GraphModule>
      backward;                    // of the kept values, then the tangents: what follows the outputs in the joint graph
  std::vector<std::string> saved;  // names of the kept values, in order: tensors and numbers, primals among them
  size_t saved_bytes = 0;          // of tensors; symbolic sizes count as their examples
};

// As it was recorded: what stands before the first call that depends on a tangent is the forward pass, and what the rest uses of it
// is kept. UserError for a graph without placeholders "tangents_1", ..., or with fewer outputs than `num_forward`.
Partition default_partition(const GraphModule& joint, size_t num_forward);

struct MinCutOptions {
  // What it costs to compute a value again, in bytes kept, for each byte that the call reads and writes. None: the fewest bytes
  // are kept, and of several ways to keep so few the one that computes least again.
  std::optional<double> price = {};
};
// The values are kept whose bytes, with the price of what is computed again, are least. Products, convolutions, normalizations,
// softmax, random numbers, reductions to less than a quarter, and what no list here knows to be cheap are never computed again.
Partition min_cut_rematerialization_partition(const GraphModule& joint, size_t num_forward,
                                              const MinCutOptions& options = {});

}  // namespace calque
