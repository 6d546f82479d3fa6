#include "node_folding.h"

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"

namespace calque {

NodeFolding::NodeFolding(GraphModule& module, std::string prefix)
    : module_(module),
      graph_(module.graph()),
      prefix_(std::move(prefix)),
      mutations_(graph_),
      values_(graph_.id_bound()),
      known_(graph_.id_bound()) {}

bool NodeFolding::is_steady_state(const Node& n) const {
  return n.kind() == NodeKind::get_attr && module_.find_tensor(n.target().text()) && !mutations_.is_written(n);
}

bool NodeFolding::is_steady_function(const Node& n) const {
  return n.kind() == NodeKind::call_function && !n.target().is_text() && !n.is_impure() && !mutations_.is_written(n) &&
         !(n.op() && n.op()->has_tag(Tag::data_dependent));
}

void NodeFolding::evaluate(const Node& n) {
  if (!may_fold(n)) return;
  for (size_t i = 0; i < n.num_input_nodes(); ++i)
    if (!is_known(*n.input_node(i))) return;
  const NodeFn value = [&](Node* input) { return values_[input->id()]; };
  try {
    Value result = run_node(n, map_nodes(n.args(), value), map_nodes(n.kwargs(), value), &module_.as_owner());
    if (!may_keep(n, result)) return;
    values_[n.id()] = std::move(result);
    known_[n.id()] = true;
  } catch (const UserError&) {
  }
}

bool NodeFolding::feeds_others(const Node& n) const {
  for (const Node* user : n.users())
    if (!is_known(*user)) return true;
  return false;
}

void NodeFolding::replace_by_literal(Node& n) const {
  const NodeFn literal = [&](Node* x) { return x == &n ? value_of(n) : Value(x); };
  for (Node* user : n.users().list())
    user->set_args_kwargs(map_nodes(user->args(), literal), map_nodes(user->kwargs(), literal));
}

std::string NodeFolding::replace_by_attribute(Node& n, const Tensor& value) {
  std::string path;
  do path = prefix_ + std::to_string(next_++);
  while (module_.find_tensor(path) || module_.find_submodule(path));
  module_.set_attribute(path, Attribute(value));
  const auto scope = graph_.inserting_before(&n);
  Node* constant = graph_.get_attr(path);
  constant->meta = n.meta;
  n.replace_all_uses_with(constant);
  return path;
}

}  // namespace calque
