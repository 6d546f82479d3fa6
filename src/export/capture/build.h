// The steps from a traced graph to a program's parts, shared by export and run_decompositions. Each works on the graph and
// its signature together, so that they stay in step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calque/export/program.h"
#include "calque/nn/module.h"
#include "calque/sym/source.h"
#include "calque/trace/fake.h"

namespace calque {

// A module's tensors as a program's first inputs: parameters, then buffers, under every name, in PyTorch's order.
struct StateInput {
  InputKind kind;
  std::string path;
  Tensor tensor;
  bool persistent = true;
};
std::vector<StateInput> state_inputs(const Module& module);
// Each tensor once, under the first of its names.
std::vector<StateInput> without_aliases(std::vector<StateInput> state);
// `state` are the graph's first inputs. Those that the graph does not use go, from both; the others are put in the order in
// which it uses them, parameters first.
void keep_used_state(Graph& graph, std::vector<StateInput>& state);

// Paths of a module's constants, by tensor; the first one names it.
using ConstantPaths = std::unordered_map<const TensorImpl*, std::vector<std::string>>;
ConstantPaths constant_paths(const Module& module);

// What a node's value, or a plain value, is as an input or output.
ArgumentSpec argument_spec(const Node& node);
ArgumentSpec argument_spec(const Value& output);
// For a graph whose first placeholders are `state` and whose outputs are the user's.
GraphSignature make_signature(const Graph& graph, const std::vector<StateInput>& state);

// Tensors that the graph reads by get_attr become inputs before the user's. Gives them by path.
std::vector<std::pair<std::string, Value>> lift_constants(GraphModule& module, GraphSignature& signature,
                                                          const ConstantPaths& paths, FakeMode* fake);

// The program with the tensors that graphs of higher-order operators hold as constants of its own; none where none does.
std::optional<ExportedProgram> lift_branch_constants(const ExportedProgram& program);

// Names inputs after their path, state after its module path with a prefix, and moves other names out of the way.
void name_placeholders(GraphModule& module, GraphSignature& signature, const std::vector<KeyPath>& user_inputs);

// Paths of the leaves of a program's inputs, under the names of the unlifted module's arguments.
std::vector<KeyPath> user_input_paths(const ModuleCallSignature& signature);
std::vector<std::string> argument_names(const ModuleCallSignature& signature);
// An input as the shape environment names it.
Source source_of(const KeyPath& path);

// The values of inputs require gradients as what they stand for does.
void keep_requires_grad(const Graph& graph, const GraphSignature& signature, const StateDict& state,
                        const std::vector<std::pair<std::string, Value>>& constants, const Values& user_inputs);

// What must not be left on inputs and outputs: module stack and source line.
void clear_boundary_meta(GraphModule& module);

// Calls f for the module and every graph module within.
template <class F>
void for_each_graph_module(GraphModule& module, F&& f) {
  for (Module* m : module.modules())
    if (auto* graph_module = dynamic_cast<GraphModule*>(m)) f(*graph_module);
}

}  // namespace calque
