#include "calque/graph/passes.h"
#include "calque/op/mode.h"
#include "node_folding.h"
#include "op/well_known.h"

namespace calque {
namespace {

bool is_literal(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::boolean: return !v.to_sym_bool().is_symbolic();
    case Value::Kind::integer: return !v.to_sym_int().is_symbolic();
    case Value::Kind::floating: return !v.to_sym_float().is_symbolic();
    case Value::Kind::none:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::dtype:
    case Value::Kind::device: return true;
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::list:
    case Value::Kind::tuple:
    case Value::Kind::dict:
    case Value::Kind::structure: break;
  }
  return false;
}

class Folding : NodeFolding {
 public:
  Folding(GraphModule& module, const NodePredicate& skip) : NodeFolding(module, "_folded_constant"), skip_(skip) {}

  bool run() {
    const NoModesScope plain;
    for (const Node* n : graph_.nodes()) evaluate(*n);
    bool changed = false;
    for (Node* n : graph_.nodes())
      if (is_known(*n) && n->kind() != NodeKind::get_attr && feeds_others(*n)) changed |= replace(*n);
    graph_.eliminate_dead_code();
    return changed;
  }

 private:
  bool may_fold(const Node& n) const override {
    if (skip_ && skip_(n)) return false;
    if (n.kind() == NodeKind::call_method)
      return n.num_input_nodes() > 0 && !is_written(n) && !n.target().text().ends_with('_');
    // A call without inputs makes a new tensor each time, and costs little to make.
    return is_steady_state(n) || (is_steady_function(n) && (n.num_input_nodes() > 0 || n.target().function()));
  }

  bool replace(Node& n) {
    const Value& value = value_of(n);
    if (is_literal(value)) {
      replace_by_literal(n);
      return true;
    }
    if (!value.is_tensor() || value.to_tensor().is_fake()) return false;
    // What is folded may be a view of a parameter; as a constant it stands alone.
    replace_by_attribute(n, call(ops().clone, {call(ops().detach, {value})}).to_tensor());
    return true;
  }

  const NodePredicate& skip_;
};

}  // namespace

bool fold_constants(GraphModule& module, const NodePredicate& skip) { return Folding(module, skip).run(); }

}  // namespace calque
