// ExportedProgram: a graph with its signature, the tensors it needs, the ranges of its symbols and the calls of its
// modules: what torch.export gives and a .pt2 archive holds. Parameters, buffers and constants are inputs of the graph.
// A program owns its graph; tensors are shared handles, mapped from the file where it was read from one. Once made it
// may be called by any number of threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/export/signature.h"
#include "calque/graph/graph_module.h"
#include "calque/nn/state_dict.h"
#include "calque/sym/shape_env.h"

namespace calque {

// Which operators a program may have: torch.export's verifiers. training: mutation and composite operators; aten: functional.
enum class Dialect : uint8_t { training, aten };

struct ExampleInputs {
  Values args;
  Kwargs kwargs;
};

class ExportedProgram {
 public:
  struct Parts {
    std::shared_ptr<GraphModule> graph_module;  // subgraphs of higher-order operators are its children
    GraphSignature signature;
    StateDict state_dict;                                // parameters and persistent buffers
    std::vector<std::pair<std::string, Value>> constants;  // lifted tensors, non-persistent buffers, custom objects
    std::vector<std::pair<std::string, ValueRange>> range_constraints;  // by symbol
    std::vector<ModuleCallEntry> module_call_graph;  // the first is the program itself
    std::optional<ExampleInputs> example_inputs;
    std::vector<std::string> guards_code;  // conditions on the inputs, as Python text
    Dialect dialect = Dialect::training;
    std::map<std::string, int64_t> opset_version = {{"aten", 10}};
    std::vector<std::pair<std::string, std::string>> metadata;  // custom metadata of the module, JSON by key
    std::string torch_version;  // of the release that wrote the file; empty for a program made here
  };

  // Checks the parts against each other (verify); UserError names what does not fit.
  explicit ExportedProgram(Parts parts);

  const GraphModule& graph_module() const { return *parts_.graph_module; }
  GraphModule& graph_module() { return *parts_.graph_module; }
  const Graph& graph() const { return parts_.graph_module->graph(); }
  Graph& graph() { return parts_.graph_module->graph(); }
  const GraphSignature& graph_signature() const { return parts_.signature; }
  const StateDict& state_dict() const { return parts_.state_dict; }
  const std::vector<std::pair<std::string, Value>>& constants() const { return parts_.constants; }
  const Parts& parts() const { return parts_; }
  const TreeSpec& in_spec() const;
  const TreeSpec& out_spec() const;

  // Runs the graph with the user's inputs flattened, in the order of the user inputs; gives the user's outputs flattened.
  // Nothing is checked but their number; mutations that the graph returns are not written back.
  Values run_flat(const Values& inputs) const;

 private:
  Parts parts_;
};

}  // namespace calque
