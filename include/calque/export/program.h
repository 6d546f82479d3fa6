// ExportedProgram: a graph with its signature, the tensors it needs, the ranges of its symbols and the calls of its
// modules: what torch.export gives and a .pt2 archive holds. Parameters, buffers and constants are inputs of the graph.
// A program owns its graph; tensors are shared handles, mapped from the file where it was read from one. Once made it
// may be called by any number of threads; calls of one that writes its state take turns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calque/export/signature.h"
#include "calque/graph/graph_module.h"
#include "calque/nn/state_dict.h"
#include "calque/sym/shape_env.h"
#include "calque/trace/make_fx.h"

namespace calque {

// Which operators a program may have: torch.export's verifiers. training: mutation and composite operators; aten: functional.
enum class Dialect : uint8_t { training, aten };

struct ExampleInputs {
  Values args;
  Kwargs kwargs;
};

struct ProgramStatistics {
  size_t op_count = 0;           // calls, those of subgraphs included
  std::set<std::string> op_set;  // what they call: "torch.ops.aten.add.Tensor"
};

class Executor;
class InputChecks;
struct CompiledEntries;

class ExportedProgram {
 public:
  struct Parts {
    std::shared_ptr<GraphModule> graph_module;  // subgraphs of higher-order operators are its children
    GraphSignature signature;
    StateDict state_dict;                                  // parameters and persistent buffers
    std::set<std::string, std::less<>> parameters;         // which of them are parameters, used or not
    std::vector<std::pair<std::string, Value>> constants;  // lifted tensors, non-persistent buffers, custom objects
    std::vector<std::pair<std::string, ValueRange>> range_constraints;  // by symbol
    std::vector<ModuleCallEntry> module_call_graph;                     // the first is the program itself
    std::optional<ExampleInputs> example_inputs;
    std::string example_inputs_pickle;     // as the file had them, where they hold objects of classes that are not known
    std::vector<std::string> guards_code;  // conditions on the inputs, as Python text
    Dialect dialect = Dialect::training;
    std::map<std::string, int64_t> opset_version = {{"aten", 10}};
    std::vector<std::pair<std::string, std::string>> metadata;  // custom metadata of the module, JSON by key
    std::string torch_version;  // of the release that wrote the file; empty for a program made here
    std::shared_ptr<const CompiledEntries> compiled = {};  // of a compiled file; null for other programs
    // Held by calls that write the state. Programs made from one another share the state, and so this.
    std::shared_ptr<std::mutex> state_mutex = std::make_shared<std::mutex>();
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
  const std::vector<std::pair<std::string, ValueRange>>& range_constraints() const { return parts_.range_constraints; }
  const std::vector<ModuleCallEntry>& module_call_graph() const { return parts_.module_call_graph; }
  Dialect dialect() const { return parts_.dialect; }
  // By the module's names, in the order of the inputs.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  const std::optional<ExampleInputs>& example_inputs() const { return parts_.example_inputs; }
  // UserError when they have another structure than the program's inputs.
  void set_example_inputs(std::optional<ExampleInputs> inputs);

  // ---- use ----------------------------------------------------------------------------------------------------------
  // Checks the inputs, runs the graph, writes what it changes of its state and inputs, gives the user's outputs.
  Value call(const Values& args, const Kwargs& kwargs = {}) const;
  // Runs the graph with the user's inputs flattened, in the order of the user inputs; gives the user's outputs flattened.
  // Nothing is checked but their number; mutations that the graph returns are not written back.
  Values run_flat(const Values& inputs) const;
  // A module with the program's state under its names, to call, change and export again. With `check_guards` its graph
  // calls a module _guards_fn first, which checks the inputs.
  std::shared_ptr<GraphModule> module(bool check_guards = true) const;

  // The functional program: writes become new values, returned before the user's outputs; operators in the table are written
  // in terms of others. Without a table that is core ATen.
  ExportedProgram run_decompositions() const;
  ExportedProgram run_decompositions(const DecompositionTable& table) const;
  // With the backward pass of a loss, which is the output of that number: PyTorch's _export_forward_backward. After the outputs
  // come the gradients of all parameters and user inputs that want one. UserError where another output wants a gradient.
  ExportedProgram forward_backward(size_t loss_index = 0) const;
  // A copy of the program, its graph changed by the passes in turn. Inputs and outputs keep their number.
  ExportedProgram transform(const std::vector<std::function<bool(GraphModule&)>>& passes) const;

  void validate() const;  // UserError names what does not fit (export/verifier.h)
  ProgramStatistics statistics() const;
  std::string str() const;  // as PyTorch prints it

 private:
  ExportedProgram retraced(const DecompositionTable& table, std::optional<size_t> loss) const;
  bool writes_state() const;
  // Calls of a program that writes its state take turns while in scope; others do not wait.
  std::unique_lock<std::mutex> turn() const;
  // What the graph takes for the user's inputs given; what it gives is in the order of the output specs.
  Values run_graph(const Values& inputs) const;
  const InputChecks& input_checks() const;
  // Null where the interpreter is to run the graph.
  std::shared_ptr<const Executor> executor_for(const Values& inputs) const;
  Parts parts_;
  struct Prepared;
  std::shared_ptr<Prepared> prepared_;  // made by the first call
};

// The same program: graph, signature, ranges, calls of modules, and state and constants with equal values. `why` receives the
// first difference.
bool same_program(const ExportedProgram& a, const ExportedProgram& b, std::string* why = nullptr);

}  // namespace calque
