// Passes over graphs. Each is one function that says whether it changed anything, and leaves a graph that lints. They read
// operators' tags and schemas, so that graphs which write tensors or view them (training IR) keep their meaning.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/graph/graph_module.h"

namespace calque {

using NodePredicate = std::function<bool(const Node&)>;

// Nodes without users go, unless they are impure (Node::is_impure, or `is_impure` where given).
bool eliminate_dead_code(Graph& graph, const NodePredicate& is_impure = {});

// Equal calls become one: same target, same arguments with defaults filled in. Random, impure and unknown calls,
// modules, tensors that are written somewhere, and what `banned` names stay. With `keep_outputs` the graph's results stay
// separate tensors.
bool eliminate_common_subexpressions(Graph& graph, const NodePredicate& banned = {}, bool keep_outputs = true);

// What depends on the module's own tensors alone is computed now and becomes a buffer `_folded_constant<i>`; numbers become
// literals. Tensors that the graph writes, random and impure calls and what `skip` names are not touched.
bool fold_constants(GraphModule& module, const NodePredicate& skip = {});

// Runs the graph on `inputs` (real, fake or symbolic tensors, any values) and stores each node's fake value in meta.val
// and its geometry in meta "tensor_meta" (shape, dtype, requires_grad, stride, memory_format). Gives the result.
Value propagate_shapes(Graph& graph, const Values& inputs, const GraphOwner* owner = nullptr);
Value propagate_shapes(GraphModule& module, const Values& inputs);
// The structure that "tensor_meta" holds for a value: PyTorch's TensorMetadata in place of tensors.
Value tensor_metadata(const Value& value);

struct SplitOptions {
  bool keep_original_order = false;      // call the parts in the order in which they first appear
  bool keep_original_node_name = false;  // in the parts
  bool keep_original_input_name = true;  // otherwise arg_0, arg_1, ...
  std::string partition_affix;           // submod_<affix>_<i>
  bool tuple_return = false;             // a single result is a tuple too
};
// Parts of the graph, numbered by `part_of`, become submodules submod_<i> that a new graph calls. UserError when the parts
// depend on each other in a cycle. Gradient mode and autocast hold in every part that they reach into: a part enters
// what is open where it begins and leaves it where it ends; the numbers must not go down then.
std::shared_ptr<GraphModule> split_module(const GraphModule& module, const std::function<int64_t(const Node&)>& part_of,
                                          const SplitOptions& options = {});
// Nodes for which `in_first` holds against the others, as alternating parts in execution order.
std::shared_ptr<GraphModule> split_by(const GraphModule& module, const NodePredicate& in_first);
// A chain of parts: each node for which `starts` holds is the first of a new one. It is asked once for each node, in order.
std::shared_ptr<GraphModule> sequential_split(const GraphModule& module, const NodePredicate& starts);
// A call of a graph module of the graph's owner becomes the nodes of that graph.
void inline_module_call(GraphModule& module, Node* call);

// Regions of another gradient mode, from one torch._C._set_grad_enabled to the next, become calls of
// wrap_with_set_grad_enabled with a graph of their own; those of the calling thread's mode stay where they are. Likewise
// _enter_autocast to its _exit_autocast become calls of wrap_with_autocast. Graphs inside the graph are treated too.
// Nodes keep their names.
bool wrap_grad_mode_regions(GraphModule& module);
bool wrap_autocast_regions(GraphModule& module);

struct Pass {
  std::string name;
  std::function<bool(GraphModule&)> run;
};

// Runs passes in an order that satisfies constraints, repeatedly until nothing changes or `steps` rounds are done. An
// error names the pass that failed and those that ran before it; an exception that is none of Calque's becomes a UserError.
class PassManager {
 public:
  explicit PassManager(std::vector<Pass> passes = {}, size_t steps = 1) : passes_(std::move(passes)), steps_(steps) {}
  void add_pass(Pass pass);
  void add_before_constraint(std::string first, std::string later);  // by the passes' names
  // Called after each pass, where given; lint runs always.
  void set_check(std::function<void(const GraphModule&)> check) { check_ = std::move(check); }
  // UserError when the order given does not satisfy the constraints.
  void validate_constraints();
  // Reorders the passes, as little as needed; UserError names the passes of a cycle.
  void solve_constraints();
  bool run(GraphModule& module);
  std::vector<std::string> order() const;

 private:
  std::string failure_of(size_t pass) const;

  std::vector<Pass> passes_;
  std::vector<std::pair<std::string, std::string>> constraints_;
  std::function<void(const GraphModule&)> check_;
  size_t steps_;
  bool validated_ = false;
};

}  // namespace calque
