// aot_export_module: a module as a graph without writes whose inputs are (parameters, buffers, arguments), as PyTorch's function
// of that name. It never refers to the module afterwards.
#pragma once

#include "calque/export/signature.h"
#include "calque/nn/module.h"
#include "calque/trace/joint.h"

namespace calque {

struct AotModuleOptions {
  bool trace_joint = false;                      // with the backward pass of a loss that the module returns, ...
  std::optional<size_t> output_loss_index = {};  // ... which is its output of that number
  const DecompositionTable* decompositions = nullptr;
  Kwargs kwargs = {};
};

struct AotModule {
  std::shared_ptr<GraphModule> graph_module;
  // Outputs: new values of what the module writes, its outputs, and with trace_joint the gradients of all parameters and
  // arguments that want one.
  GraphSignature signature;
};

// UserError where no loss is named, the loss is no scalar or wants no gradient, another output wants one, or a parameter that wants
// one does not matter for the loss.
AotModule aot_export_module(Module& module, const Values& args, const AotModuleOptions& options = {});

}  // namespace calque
