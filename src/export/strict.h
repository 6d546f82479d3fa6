// Strict capture: a module first as the user wrote it, a graph of functions and methods, so that what its forward decides on
// outside of tensors is seen while it runs and refused where a graph cannot promise it. The graph is then run again to
// become a program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/export/fake_inputs.h"
#include "calque/graph/graph.h"
#include "calque/nn/module.h"

namespace calque {

struct StrictCapture {
  Graph graph;                                            // one placeholder for each leaf of the inputs
  std::vector<std::pair<std::string, Tensor>> constants;  // tensors it refers to that the module does not hold
};

// The module is as before afterwards. UserErrors name what it does that a captured program cannot promise.
StrictCapture capture_strict(Module& module, const FakeInputs& inputs);

// Runs the captured graph, with the tensors that the module holds now.
Value run_captured(const StrictCapture& captured, const Module& module, const Values& args, const Kwargs& kwargs);

}  // namespace calque
