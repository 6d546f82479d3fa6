#include "compile/segments.h"

#include "calque/base/error.h"

namespace calque::compile_detail {
namespace {

// Where the last part begins and ends, as ids of nodes.
struct Extent {
  uint32_t begin = 0, end = 0;
};

Extent last_extent(const Captured& c) {
  const size_t answered = c.marks.size() - (c.open ? 1 : 0);
  return {answered == 0 ? 0 : c.marks[answered - 1].position,
          c.open ? c.marks.back().position : c.module->graph().id_bound()};
}

bool is_computed(const Node& n) {
  return n.kind() != NodeKind::placeholder && n.kind() != NodeKind::get_attr && n.kind() != NodeKind::output;
}

void each_node(const Value& v, const std::function<void(const Node&)>& fn) {
  if (v.is_node()) fn(*v.to_node());
  if (v.is_sequence())
    for (const Value& item : v.to_items()) each_node(item, fn);
}

bool belongs(const Node& n, const Extent& extent) { return is_computed(n) && n.id() >= extent.begin && n.id() < extent.end; }

// In the order in which they are used: values from before the part, inputs of the call included.
std::vector<const Node*> outer_values(const Captured& c, const Extent& extent) {
  std::vector<const Node*> out;
  std::set<const Node*> seen;
  const auto add = [&](const Node& n) {
    if (n.kind() == NodeKind::get_attr || belongs(n, extent)) return;
    if (seen.insert(&n).second) out.push_back(&n);
  };
  const Graph& graph = std::as_const(*c.module).graph();
  for (const Node* n : graph.nodes())
    if (belongs(*n, extent))
      for (const Node* input : n->all_input_nodes()) add(*input);
  each_node(graph.output_value(), add);
  return out;
}

}  // namespace

std::vector<std::string> needs_of_last_part(const Captured& captured) {
  std::vector<std::string> out;
  for (const Node* n : outer_values(captured, last_extent(captured)))
    if (n->kind() != NodeKind::placeholder) out.push_back(n->name());
  return out;
}

Part last_part(const Captured& captured, const std::set<std::string>& gives, bool gives_all) {
  const Extent extent = last_extent(captured);
  const Graph& from = std::as_const(*captured.module).graph();
  Part part;
  Graph graph;
  graph.set_shape_env(captured.fake->env());
  NodeMapping made;
  for (const Node* n : outer_values(captured, extent)) {
    Node* p = graph.placeholder(n->name());
    p->meta = n->meta;
    made.emplace(n, p);
    part.takes.push_back(n->name());
  }
  const auto mapped = [&](const Node* n) -> Value {
    const auto at = made.find(n);
    if (at != made.end()) return at->second;
    if (n->kind() != NodeKind::get_attr)
      throw InternalError("a part of a graph uses a value that nobody gives: " + n->name());
    Node* read = graph.node_copy(*n);
    made.emplace(n, read);
    return read;
  };
  Values outputs;
  for (const Node* n : from.nodes()) {
    if (!belongs(*n, extent)) continue;
    if (n->is_impure(true)) part.is_pure = false;
    Node* copy = graph.node_copy(*n, [&](Node* input) { return mapped(input); });
    made.emplace(n, copy);
    const bool is_value = n->meta.val.is_tensor() || n->meta.val.expr() != nullptr;
    if ((gives_all && is_value) || gives.contains(n->name())) {
      part.gives.push_back(n->name());
      outputs.emplace_back(copy);
    }
  }
  for (const Value& v : from.output_value().to_items()) outputs.push_back(v.is_node() ? mapped(v.to_node()) : v);
  graph.output(tuple(std::move(outputs)));
  graph.lint();
  part.module = std::make_shared<GraphModule>(*captured.module, std::move(graph));
  return part;
}

}  // namespace calque::compile_detail
