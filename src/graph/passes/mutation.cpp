#include "mutation.h"

#include <numeric>

namespace calque {
namespace {

bool is_in_place_name(const std::string& name) { return name.size() > 1 && name.ends_with('_') && !name.ends_with("__"); }

// May the result share memory with an input?
bool may_alias(const Node& n) {
  switch (n.kind()) {
    case NodeKind::placeholder:
    case NodeKind::get_attr:
    case NodeKind::output: return false;
    case NodeKind::call_module:
    case NodeKind::call_method: return true;
    case NodeKind::call_function: break;
  }
  const Operator* op = n.op();
  if (!op) return true;
  if (op->has_tag(Tag::view) || op->has_tag(Tag::may_alias) || op->is_composite()) return true;
  for (const SchemaArgument& r : op->schema().returns)
    if (!r.alias.empty()) return true;
  return false;
}

template <class F>
void each_written(const Node& n, F&& f) {
  const auto all = [&](const Value& v) { for_each_node(v, f); };
  if (n.kind() == NodeKind::call_method) {
    if (is_in_place_name(n.target().text()) && !n.args().empty()) all(n.args()[0]);
    return;
  }
  if (n.kind() == NodeKind::call_module) {
    const GraphOwner* owner = n.graph().owner();
    const Graph* called = owner ? owner->subgraph(n.target().text()) : nullptr;
    if (called && !Mutations(*called).any()) return;
    for (size_t i = 0; i < n.num_input_nodes(); ++i) f(n.input_node(i));  // it may write any of them
    return;
  }
  if (n.kind() != NodeKind::call_function) return;
  if (const Function* function = n.target().function()) {
    const std::string name(function->short_name());
    const bool python_in_place =
        function->name().starts_with("operator.i") && name != "invert" && name != "is_" && name != "is_not";
    const Value* in_place = n.find_kwarg("inplace");
    const bool writes = function->is_impure() || python_in_place || is_in_place_name(function->packet()) ||
                        (in_place && in_place->kind() == Value::Kind::boolean && !in_place->to_sym_bool().is_symbolic() &&
                         in_place->to_bool());
    if (writes && !n.args().empty()) all(n.args()[0]);
    if (const Value* out = n.find_kwarg("out")) all(*out);
    return;
  }
  const Operator* op = n.op();
  if (!op) {  // not of the table: it may write any of them
    for (size_t i = 0; i < n.num_input_nodes(); ++i) f(n.input_node(i));
    return;
  }
  const auto& schema = op->schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (!schema[i].is_written()) continue;
    if (const Value* given = n.find_kwarg(schema[i].name))
      all(*given);
    else if (!schema[i].keyword_only && i < n.args().size())
      all(n.args()[i]);
  }
}

}  // namespace

void Mutations::join(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (size_[a] < size_[b]) std::swap(a, b);
  parent_[b] = a;
  size_[a] += size_[b];
}

Mutations::Mutations(const Graph& graph, bool (*is_fresh)(const Node&))
    : parent_(graph.id_bound()), size_(graph.id_bound(), 1), written_(graph.id_bound()), regions_(graph.id_bound()) {
  std::iota(parent_.begin(), parent_.end(), 0U);
  std::vector<uint32_t> writes;
  uint32_t region = 0;
  for (const Node* n : graph.nodes()) {
    regions_[n->id()] = region;
    const bool aliases = may_alias(*n) && !(is_fresh && is_fresh(*n));
    for (size_t i = 0; aliases && i < n->num_input_nodes(); ++i) join(n->id(), n->input_node(i)->id());
    const size_t before = writes.size();
    each_written(*n, [&](const Node* written) { writes.push_back(written->id()); });
    if (writes.size() != before) ++region;
  }
  any_ = !writes.empty();
  for (const uint32_t id : writes) written_[find(id)] = true;
}

}  // namespace calque
