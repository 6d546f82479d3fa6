#include "calque/base/error.h"
#include "calque/graph/graph_module.h"
#include "calque/op/tree.h"
#include "calque/trace/decompositions.h"
#include "calque/trace/functional.h"
#include "trace/capture_scope.h"
#include "trace/recorder.h"

namespace calque {

DecompositionInterpreter::DecompositionInterpreter(const TracedGraph& source, const DecompositionTable& table,
                                                   DecomposeOptions options)
    : Interpreter(source.graph()), source_(source), table_(table), options_(options) {}

Value DecompositionInterpreter::run_node(const Node& node) {
  const NodeMetaScope origin(node.meta);
  return Interpreter::run_node(node);
}

TracedGraph DecompositionInterpreter::trace(const Values& inputs, MakeFxOptions options) {
  options.decompositions = &table_;
  options.record_module_stack = true;
  std::function<Value(const Values&)> run = [this](const Values& values) { return this->run(values); };
  if (options_.functional) run = functionalize(std::move(run));
  const CompositesByTable composites(table_);
  const CaptureScope scope(
      {.composites = options_.composites_by_table ? &composites : nullptr, .python_bodies = options_.python_bodies});
  TracedGraph out = make_fx_values(run, inputs, options);
  if (options_.functional) out.graph().eliminate_dead_code();  // views that were computed anew

  const std::vector<Node*> before = source_.module->graph().placeholders(), after = out.graph().placeholders();
  for (size_t i = 0; i < before.size(); ++i) {
    const Value val = after[i]->meta.val;
    after[i]->meta = before[i]->meta;
    after[i]->meta.val = val;
  }
  out.in_spec = source_.in_spec;
  out.inputs = source_.inputs;
  return out;
}

TracedGraph DecompositionInterpreter::decompose() {
  if (!source_.fake)
    throw UserError("DecompositionInterpreter: the graph was traced on real tensors; give the arguments to run it on");
  Values inputs;
  for (const Node* n : source_.graph().placeholders())
    inputs.push_back(fresh(n->meta.val));  // a trace that writes must not reach the graph's own
  return trace(inputs,
               {.mode = source_.env ? TracingMode::symbolic : TracingMode::fake, .env = source_.env, .fake = source_.fake});
}

TracedGraph DecompositionInterpreter::decompose(const Values& args) {
  return trace(tree_flatten(tuple(args)).leaves, {.mode = TracingMode::real});
}

}  // namespace calque
