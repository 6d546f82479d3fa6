// Modules that programs become and are made from: ExportedProgram::module() is a graph module that takes the user's
// arguments and checks them; a graph module that is exported keeps what its nodes know of their origin.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calque/export/input_checks.h"
#include "calque/export/program.h"
#include "calque/graph/graph_module.h"
#include "calque/op/tree.h"

namespace calque {

// Takes arguments and keyword arguments in the structure of its pytree_info; UserError when they have another, or, without
// a guards module, when they are not what the program takes. With a mutex calls take turns: the state that they write is the
// program's.
class ProgramModule : public GraphModule {
 public:
  explicit ProgramModule(std::shared_ptr<const InputChecks> checks, std::shared_ptr<std::mutex> state_mutex = nullptr)
      : GraphModule(Graph()), checks_(std::move(checks)), state_mutex_(std::move(state_mutex)) {}
  Value forward_values(const Values& args, const Kwargs& kwargs) override;
  // The leaves in the order of the placeholders.
  Values flatten(const Values& args, const Kwargs& kwargs) const;

 protected:
  ProgramModule(const ProgramModule&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new ProgramModule(*this)); }

 private:
  std::shared_ptr<const InputChecks> checks_;
  std::shared_ptr<std::mutex> state_mutex_;
};

// What a program promises of its inputs, as a module that is called with their leaves and throws where one does not hold.
// Called in a trace, the conditions on sizes become guards of the trace.
class GuardsModule : public Module, public HasSideEffects {
 public:
  GuardsModule(const ExportedProgram& program, std::shared_ptr<const InputChecks> checks, std::vector<KeyPath> paths);
  std::string type_name() const override { return "torch.export._unlift.GuardsFn"; }
  Value forward_values(const Values& args, const Kwargs& kwargs) override;

 protected:
  GuardsModule(const GuardsModule&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new GuardsModule(*this)); }

 private:
  void check(SymBool condition, const std::string& text) const;

  void guard_symbols(const Values& args) const;

  std::shared_ptr<const InputChecks> checks_;
  std::vector<KeyPath> paths_;
  Values expected_;  // the placeholders' values
  std::vector<std::pair<std::string, ValueRange>> ranges_;
  std::shared_ptr<ShapeEnv> env_;
};

// Calls a module. The nodes of a graph module's graph are run one by one, so that what a trace records for them takes their
// meta.
Value run_keeping_meta(Module& module, const Values& args, const Kwargs& kwargs);

// A module with the graph of `traced` and the graphs it calls, without the tensors it was traced with.
std::shared_ptr<GraphModule> state_free(GraphModule& traced);

}  // namespace calque
