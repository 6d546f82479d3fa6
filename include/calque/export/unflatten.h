// unflatten: a program as modules again, in the hierarchy of the module that it was exported from, as torch.export.unflatten
// makes them. Each submodule has the part of the graph that ran in it; one that was called with different graphs is there once
// for each, as n, n@1, .... A submodule whose call signature was kept on export takes and gives what the original did, and can be
// replaced (Module::set_submodule). The others take what their part of the graph needs.
#pragma once

#include <memory>
#include <string>

#include "calque/export/input_checks.h"
#include "calque/export/program.h"
#include "calque/graph/graph_module.h"

namespace calque {

// A module of an unflattened program that runs its own graph.
class InterpreterModule : public GraphModule {
 public:
  InterpreterModule(Graph graph, std::string original_type)
      : GraphModule(Attributes{}, Graph()), original_type_(std::move(original_type)) {
    set_graph(std::move(graph));
  }
  // Of the module that it stands for: "torch.nn.modules.linear.Linear"; empty where it is not known.
  const std::string& original_type() const { return original_type_; }
  std::string type_name() const override { return "torch.export.unflatten.InterpreterModule"; }

 protected:
  InterpreterModule(const InterpreterModule&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new InterpreterModule(*this)); }

 private:
  std::string original_type_;
};

// The whole. Takes the arguments that the program takes and checks them as the program does.
class UnflattenedModule : public InterpreterModule {
 public:
  UnflattenedModule(Graph graph, std::string original_type, const ExportedProgram& program);

  bool check_input_constraints = true;

  Value forward_values(const Values& args, const Kwargs& kwargs) override;
  // What its graph takes for these arguments, checked; and the structure of what it gives.
  Values flatten(const Values& args, const Kwargs& kwargs) const;
  const TreeSpec& out_spec() const { return out_spec_; }
  std::vector<std::string> argument_names() const override { return argument_names_; }
  std::string type_name() const override { return "torch.export.unflatten.UnflattenedModule"; }

 protected:
  UnflattenedModule(const UnflattenedModule&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new UnflattenedModule(*this)); }

 private:
  std::shared_ptr<const InputChecks> checks_;
  TreeSpec out_spec_;
  std::vector<std::string> argument_names_;
};

// Parameters are the program's own; buffers and constants, which running may write, are copies. A UserError names the node
// where the calls of the modules do not nest.
std::shared_ptr<UnflattenedModule> unflatten(const ExportedProgram& program);

}  // namespace calque
