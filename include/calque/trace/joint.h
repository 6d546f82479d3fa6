// A function and its backward pass as one graph without writes: what PyTorch's AOTAutograd traces.
//
//   auto joint = aot_export_joint_simple(f, {x, w}, {.trace_joint = true});
//
// trace_joint gives the graph with what is known of it; aot_export_joint_simple is PyTorch's function of that name, and
// aot_export_module (export/aot.h) takes modules. trace/partition.h takes the graph apart again into forward and backward.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "calque/trace/make_fx.h"

namespace calque {

struct JointOptions {
  const DecompositionTable* decompositions = nullptr;
  bool backward = true;  // false: the function alone
  std::optional<size_t> loss =
      {};  // the output whose gradients are meant; none: outputs that want a gradient have a tangent each
};

// Placeholders are the primals, then the tangents. The graph gives, in this order: the new values of primals that the function
// writes; its outputs; with a backward pass a gradient for each primal, None for one that wants none. With a loss there are no
// tangents, and only primals that want a gradient have one.
struct JointGraph {
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<FakeMode> fake;
  size_t num_primals = 0;
  size_t num_forward = 0;             // outputs before the gradients
  std::vector<size_t> tangents = {};  // outputs that have one, by position among the forward's
  std::vector<size_t> written = {};   // primals that the function writes
  std::vector<size_t> aliases = {};   // outputs of the function that share memory with a primal
  TreeSpec out_spec = {};             // of what the function gives
};

// `primals` are flat: tensors, which are taken as leaves that want a gradient if they do now, and numbers. Fake tensors keep their
// symbols; of others sizes are fixed. Passes a UserError on, and throws one where a written primal wants a gradient.
JointGraph trace_joint(const std::function<Value(const Values& primals)>& function, const Values& primals,
                       const JointOptions& options = {});

struct AotJointOptions {
  bool trace_joint = true;  // false: the function alone, no gradients recorded
  const DecompositionTable* decompositions = nullptr;
};
// PyTorch's aot_export_joint_simple: a flat function that writes none of its arguments and gives new tensors. The graph takes
// (primals, tangents) and gives its outputs and a gradient or None for each primal; without trace_joint it takes and gives what the
// function does. UserError for functions that do not fit.
std::shared_ptr<GraphModule> aot_export_joint_simple(const std::function<Value(const Values& args)>& function,
                                                     const Values& args, const AotJointOptions& options = {});

}  // namespace calque
