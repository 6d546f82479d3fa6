// export: a module or function run once on fake inputs, as a program that stands for it: what torch.export.export gives.
//
//   ExportedProgram p = export_program(*model, {x}, {}, {.dynamic_shapes = DynamicShapes::dict({{"x", DynamicShapes::dict({{0, Dim("batch")}})}})});
//   Value y = p.call({x2});
//
// The graph is training IR: composite operators whole, writes kept. The module is not changed, and its tensors are shared
// with the program.
#pragma once

#include <string>
#include <vector>

#include "calque/export/dynamic_shapes.h"
#include "calque/export/program.h"
#include "calque/trace/tracer.h"

namespace calque {

struct ExportOptions {
  // What is dynamic of the inputs; everything else is as in the example.
  DynamicShapes dynamic_shapes = {};
  // The form of PyTorch's strict export: a tensor under several names is one input, under the first; state that the program does
  // not use is no input; symbols are named after the inputs' positions.
  bool strict = false;
  // Paths of submodules whose calls are kept as such: arguments and results by node.
  std::vector<std::string> preserve_module_call_signature = {};
  // Conditions on sizes that no Dim can say become checks of the program instead of errors.
  bool prefer_deferred_runtime_asserts_over_guards = false;
  // A dimension that was asked to be dynamic stays so when its example is 0 or 1; false is PyTorch's behaviour.
  bool keep_dynamic_zero_one = true;
};

// UserErrors: constraint_violation lists every promise about sizes that the program breaks, with suggested fixes;
// data_dependent names the value on which the program branches.
ExportedProgram export_program(Module& module, const Values& args, const Kwargs& kwargs = {},
                               const ExportOptions& options = {});
ExportedProgram export_program(const TraceableFunction& function, const Values& args, const Kwargs& kwargs = {},
                               const ExportOptions& options = {});

// Whether the calling thread is inside an export.
bool is_exporting();

}  // namespace calque
