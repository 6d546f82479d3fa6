// Conditions that a program can only check when it runs, put into its graph: what torch.fx's insert_deferred_runtime_asserts
// does. Sizes of inputs are read once, at the top; numbers that the graph computes twice are computed once; values from
// tensor data are checked against their range where they appear.
#pragma once

#include <unordered_map>
#include <vector>

#include "calque/graph/graph_module.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/unbacked.h"

namespace calque {

// Where each value from tensor data (unbacked symbol) is found first.
std::unordered_map<const Node*, UnbackedBindings> find_unbacked_bindings(const Graph& graph);

// In the module's graph and in those that it calls, each with the conditions on what it computes. `user_inputs`: paths of the
// last placeholders. A size that several inputs have is read from the one that named it.
void insert_runtime_asserts(GraphModule& module, ShapeEnv& env, const std::vector<KeyPath>& user_inputs);

// A check of dtype, device and layout before each aten.to, whose meaning depends on them.
void insert_metadata_asserts(Graph& graph);

}  // namespace calque
