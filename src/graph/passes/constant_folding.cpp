#include <unordered_map>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/passes.h"
#include "calque/op/mode.h"
#include "mutation.h"
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

class Folding {
 public:
  Folding(GraphModule& module, const NodePredicate& skip)
      : module_(module),
        graph_(module.graph()),
        skip_(skip),
        mutations_(graph_),
        values_(graph_.id_bound()),
        known_(graph_.id_bound()) {}

  bool run() {
    const NoModesScope plain;
    for (const Node* n : graph_.nodes()) evaluate(*n);
    bool changed = false;
    for (Node* n : graph_.nodes())
      if (known_[n->id()] && n->kind() != NodeKind::get_attr && feeds_others(*n)) changed |= replace(*n);
    graph_.eliminate_dead_code();
    return changed;
  }

 private:
  bool may_fold(const Node& n) const {
    if (skip_ && skip_(n)) return false;
    if (n.kind() == NodeKind::get_attr)
      return module_.find_tensor(n.target().text()) != nullptr && !mutations_.is_written(n);
    if (n.kind() == NodeKind::call_method)
      return n.num_input_nodes() > 0 && !mutations_.is_written(n) && !n.target().text().ends_with('_');
    if (n.kind() != NodeKind::call_function || n.target().is_text() || n.is_impure() || mutations_.is_written(n))
      return false;
    if (n.op() && n.op()->has_tag(Tag::data_dependent)) return false;
    // A call without inputs makes a new tensor each time, and costs little to make.
    return n.num_input_nodes() > 0 || n.target().function() != nullptr;
  }

  void evaluate(const Node& n) {
    if (!may_fold(n)) return;
    for (size_t i = 0; i < n.num_input_nodes(); ++i)
      if (!known_[n.input_node(i)->id()]) return;
    const NodeFn value_of = [&](Node* input) { return values_[input->id()]; };
    try {
      values_[n.id()] = value_of_node(n, map_nodes(n.args(), value_of), map_nodes(n.kwargs(), value_of));
      known_[n.id()] = true;
    } catch (const UserError&) {
      // It would fail when the graph runs; then it says so itself.
    }
  }
  Value value_of_node(const Node& n, const Values& args, const Kwargs& kwargs) const {
    if (n.kind() == NodeKind::get_attr) return *module_.find_tensor(n.target().text());
    if (n.kind() == NodeKind::call_method) return call_method(n.target().text(), args, kwargs);
    if (const Operator* op = n.op()) return call(*op, args, kwargs);
    return (*n.target().function())(args, kwargs);
  }

  bool feeds_others(const Node& n) const {
    for (const Node* user : n.users())
      if (!known_[user->id()]) return true;
    return false;
  }

  bool replace(Node& n) {
    const Value& value = values_[n.id()];
    if (is_literal(value)) {
      const NodeFn literal = [&](Node* x) { return x == &n ? value : Value(x); };
      for (Node* user : n.users().list())
        user->set_args_kwargs(map_nodes(user->args(), literal), map_nodes(user->kwargs(), literal));
      return true;
    }
    if (!value.is_tensor() || value.to_tensor().is_fake()) return false;
    std::string path;
    do path = "_folded_constant" + std::to_string(next_++);
    while (module_.find_tensor(path) || module_.find_submodule(path));
    // What is folded may be a view of a parameter; as a constant it stands alone.
    module_.set_attribute(path, call(ops().clone, {call(ops().detach, {value})}).to_tensor());
    const auto scope = graph_.inserting_before(&n);
    Node* constant = graph_.get_attr(path);
    constant->meta = n.meta;
    n.replace_all_uses_with(constant);
    return true;
  }

  GraphModule& module_;
  Graph& graph_;
  const NodePredicate& skip_;
  Mutations mutations_;
  std::vector<Value> values_;
  std::vector<bool> known_;
  size_t next_ = 0;
};

}  // namespace

bool fold_constants(GraphModule& module, const NodePredicate& skip) { return Folding(module, skip).run(); }

}  // namespace calque
