// Nodes of a graph that become one call of a submodule with their graph.
#pragma once

#include <vector>

#include "calque/run/passes.h"

namespace calque::run {

// What the nodes read of others, each once, in order.
std::vector<Node*> inputs_of(const std::vector<Node*>& nodes);
// The nodes, in order, go into a submodule under the prefix and a number; the call stands where the last one stood, with its name and meta.
void outline(PassInput& input, const std::vector<Node*>& nodes, const std::vector<Node*>& inputs, const std::string& prefix);

}  // namespace calque::run
