#include <algorithm>

#include "calque/base/error.h"
#include "calque/graph/passes.h"
#include "graph/region_functions.h"

namespace calque {
namespace {

struct RegionKind {
  const char* target;
  const char* class_name;  // of PyTorch's operator object, for torch_fn
  // The parts into which the graph is split, and whether a part is a region.
  std::shared_ptr<GraphModule> (*split)(const GraphModule& module);
  bool (*switches)(const Node& n);
  bool (*is_region)(const Node& first);
};

GraphModule& graph_of(const GraphModule& module, const Node& call) {
  auto* sub = dynamic_cast<GraphModule*>(module.find_submodule(call.target().text()));
  if (!sub) throw UserError("node " + call.name() + " calls " + call.target().text() + ", which is no graph");
  return *sub;
}

const Node* first_call(const Graph& graph) {
  for (const Node* n : graph.nodes())
    if (n->kind() != NodeKind::placeholder) return n;
  return nullptr;
}

void replace(Node* old_node, Node* new_node) {
  old_node->replace_all_uses_with(new_node);
  old_node->graph().erase_node(old_node);
}

// The call of a part becomes a call of the higher-order operator on it.
void wrap(GraphModule& module, Node* call, const RegionKind& kind) {
  Graph& graph = module.graph();
  Graph& body = graph_of(module, *call).graph();
  const Node* enter = first_call(body);
  Node* output = body.output_node();
  const Value results = output->args().at(0);
  const bool is_single = results.is_node();

  const auto scope = graph.inserting_before(call);
  Node* attr = graph.get_attr(call->target().text());
  attr->meta.nn_module_stack = enter->meta.nn_module_stack;
  Values args = enter->args();
  args.emplace_back(attr);
  args.insert(args.end(), call->args().begin(), call->args().end());
  Node* wrapped = graph.call_function(get_function(kind.target), std::move(args), {},
                                      is_single ? results.to_node()->name() : std::string_view{});
  wrapped->meta.nn_module_stack = enter->meta.nn_module_stack;
  const std::string short_name(get_function(kind.target)->short_name());
  wrapped->meta.torch_fn =
      std::make_shared<const std::pair<std::string, std::string>>(short_name, kind.class_name + ("." + short_name));
  Values vals;
  for_each_node(results, [&](const Node* n) { vals.push_back(n->meta.val); });
  wrapped->meta.val = tuple(std::move(vals));
  if (is_single) {
    output->set_args({tuple({results})});
    Node* item = graph.call_function(get_function("operator.getitem"), {wrapped, 0});
    item->meta = results.to_node()->meta;
    replace(call, item);
  } else {
    replace(call, wrapped);
    for (Node* item : wrapped->users().list()) {
      const Node* result = results.to_items().at(static_cast<size_t>(item->args().at(1).to_int())).to_node();
      item->rename(result->name());
      item->meta = result->meta;
    }
  }
}

// The switches that made a part: the first and, for autocast, the last.
void remove_switches(Graph& body, const RegionKind& kind) {
  std::vector<Node*> found;
  for (Node* n : body.nodes())
    if (kind.switches(*n)) found.push_back(n);
  if (found.empty()) return;
  if (found.size() > 1) body.erase_node(found.back());
  body.erase_node(found.front());
}

// What is new in the graph that was made, and what nothing refers to any more.
void adopt(GraphModule& module, GraphModule& made) {
  const auto first_item = [](const Node& n) { return n.target().text().substr(0, n.target().text().find('.')); };
  const auto refers = [](const Node& n) { return n.kind() == NodeKind::get_attr || n.kind() == NodeKind::call_module; };
  std::vector<std::string> stale;
  for (const Node* n : module.graph().nodes())
    if (refers(*n) && module.find_submodule(first_item(*n))) stale.push_back(first_item(*n));
  std::erase_if(stale, [&](const std::string& name) {
    return std::any_of(made.graph().nodes().begin(), made.graph().nodes().end(),
                       [&](const Node* n) { return refers(*n) && first_item(*n) == name; });
  });
  for (const std::string& name : stale) module.remove_submodule(name);
  for (const Node* n : made.graph().nodes())
    if (refers(*n) && made.find_submodule(n->target().text()) &&
        made.find_submodule(n->target().text()) != module.find_submodule(n->target().text()))
      module.set_attribute(n->target().text(), Attribute(made.get_submodule_ptr(n->target().text())));
  module.set_graph(std::move(made.graph()));
}

bool wrap_regions(GraphModule& module, const RegionKind& kind) {
  const auto nodes = module.graph().nodes();
  bool changed = false;
  if (std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) { return kind.switches(*n); })) {
    changed = true;
    const std::shared_ptr<GraphModule> made = kind.split(module);
    for (Node* n : made->graph().node_list()) {
      if (n->kind() != NodeKind::call_module || !n->target().text().starts_with("submod_")) continue;
      Graph& body = graph_of(*made, *n).graph();
      const Node* first = first_call(body);
      if (first && kind.is_region(*first)) {
        wrap(*made, n, kind);
        remove_switches(body, kind);
      } else {
        remove_switches(body, kind);
        inline_module_call(*made, n);
      }
    }
    adopt(module, *made);
  }
  for (const Node* n : module.graph().nodes())
    if (n->kind() == NodeKind::get_attr)
      if (auto* inner = dynamic_cast<GraphModule*>(module.find_submodule(n->target().text())))
        changed |= wrap_regions(*inner, kind);
  module.graph().lint();
  return changed;
}

// Only the outermost regions are parts; those within are regions of the part's own graph.
std::shared_ptr<GraphModule> split_at_autocast(const GraphModule& module) {
  std::vector<const Node*> open;
  bool left = false;
  return sequential_split(module, [&](const Node& n) {
    const bool starts = left || (open.empty() && calls_enter_autocast(n));
    left = false;
    if (calls_enter_autocast(n)) {
      open.push_back(&n);
    } else if (calls_exit_autocast(n)) {
      if (open.empty() || n.args().at(0).to_node() != open.back())
        throw UserError("wrap_autocast_regions: " + n.name() + " leaves a region that is not the innermost one");
      open.pop_back();
      left = open.empty();
    }
    return starts;
  });
}

}  // namespace

void inline_module_call(GraphModule& module, Node* call) {
  Graph& graph = module.graph();
  const GraphModule& inner = graph_of(module, *call);
  NodeMapping mapping;
  const std::vector<Node*> placeholders = inner.graph().placeholders();
  if (placeholders.size() != call->args().size())
    throw UserError("inline_module_call: " + call->target().text() + " takes " + std::to_string(placeholders.size()) +
                    " arguments, " + call->name() + " gives " + std::to_string(call->args().size()));
  for (size_t i = 0; i < placeholders.size(); ++i) mapping[placeholders[i]] = call->args()[i];
  const NodeFn map = [&](Node* n) { return mapping.at(n); };
  Value results;
  {
    const auto scope = graph.inserting_before(call);
    for (const Node* n : inner.graph().nodes()) {
      if (n->kind() == NodeKind::placeholder) continue;
      if (n->kind() == NodeKind::output) {
        results = map_nodes(n->args().at(0), map);
        continue;
      }
      std::string path;
      if (n->kind() == NodeKind::get_attr || n->kind() == NodeKind::call_module) {
        path = n->target().text();
        if (module.find_submodule(path) || module.find_tensor(path)) {
          int i = 1;
          while (module.find_submodule("submod_" + std::to_string(i)) || module.find_tensor("submod_" + std::to_string(i)))
            ++i;
          path = "submod_" + std::to_string(i);
        }
        if (inner.find_submodule(n->target().text()))
          module.set_attribute(path, Attribute(inner.get_submodule_ptr(n->target().text())));
        else
          module.set_attribute(path, Attribute(*inner.find_tensor(n->target().text())));
      }
      Node* copy = graph.node_copy(*n, map);
      if (!path.empty()) copy->set_target(path);
      mapping[n] = copy;
    }
  }
  if (results.is_node()) {
    call->replace_all_uses_with(results.to_node());
  } else if (results.kind() == Value::Kind::tuple || results.kind() == Value::Kind::list) {
    static const FunctionRef getitem = get_function("operator.getitem");
    for (Node* user : call->users().list()) {
      if (user->target().function() != getitem.get())
        throw UserError("inline_module_call: " + user->name() + " uses the tuple that " + call->name() +
                        " gives as a whole");
      replace(user, results.to_items().at(static_cast<size_t>(user->args().at(1).to_int())).to_node());
    }
  }
  graph.erase_node(call);
}

bool wrap_grad_mode_regions(GraphModule& module) {
  static const RegionKind kind{
      "torch.ops.higher_order.wrap_with_set_grad_enabled", "WrapWithSetGradEnabled",
      [](const GraphModule& m) { return sequential_split(m, calls_set_grad_enabled); }, calls_set_grad_enabled,
      [](const Node& first) { return calls_set_grad_enabled(first) && first.args().at(0).to_bool() != grad_enabled(); }};
  return wrap_regions(module, kind);
}

bool wrap_autocast_regions(GraphModule& module) {
  static const RegionKind kind{"torch.ops.higher_order.wrap_with_autocast", "WrapWithAutocast", split_at_autocast,
                               [](const Node& n) { return calls_enter_autocast(n) || calls_exit_autocast(n); },
                               calls_enter_autocast};
  return wrap_regions(module, kind);
}

}  // namespace calque
