// Tensors that the graphs of higher-order operators hold become operands of the calls: a file has no place for them inside.
#include <algorithm>

#include "export/capture/build.h"

namespace calque {
namespace {

bool reads_tensor(const GraphModule& module, const Node& node) {
  return node.kind() == NodeKind::get_attr && module.find_tensor(node.target().text());
}

// The graphs that a call is given, each once.
std::vector<GraphModule*> graphs_of(const GraphModule& module, const Node& call) {
  std::vector<GraphModule*> out;
  if (call.kind() != NodeKind::call_function) return out;
  for (const Node* input : call.all_input_nodes())
    if (input->kind() == NodeKind::get_attr)
      if (auto* graph = dynamic_cast<GraphModule*>(module.find_submodule(input->target().text())))
        if (std::find(out.begin(), out.end(), graph) == out.end()) out.push_back(graph);
  return out;
}

// Operands are a call's last argument where that is a list or a tuple (cond, while_loop, map, scan), else its last arguments.
void add_operand(Node& call, Node* operand) {
  Values args = call.args();
  const Value::Kind kind = args.back().kind();
  if (kind == Value::Kind::list || kind == Value::Kind::tuple) {
    Values items = args.back().to_items();
    items.emplace_back(operand);
    args.back() = kind == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
  } else {
    args.emplace_back(operand);
  }
  call.set_args(std::move(args));
}

Node* add_placeholder(Graph& graph, const std::string& name, const Value& val) {
  const std::vector<Node*> inputs = graph.placeholders();
  const auto where = inputs.empty() ? graph.inserting_before() : graph.inserting_after(inputs.back());
  Node* node = graph.placeholder(name);
  node->set_target(node->name());
  node->meta.val = val;
  return node;
}

std::string free_name(const GraphModule& module) {
  for (size_t i = 0;; ++i)
    if (std::string name = "_branch_constant" + std::to_string(i); !module.find_tensor(name) && !module.find_submodule(name))
      return name;
}

// What the graph's calls are given comes to be read in the graph itself, from the inside out.
void lift_from_calls(GraphModule& module) {
  for (Node* call : module.graph().node_list()) {
    const std::vector<GraphModule*> graphs = graphs_of(module, *call);
    for (GraphModule* graph : graphs) lift_from_calls(*graph);
    for (GraphModule* graph : graphs)
      for (Node* inner : graph->graph().node_list()) {
        if (!reads_tensor(*graph, *inner)) continue;
        const std::string name = free_name(module);
        module.set_attribute(name, Attribute(*graph->find_tensor(inner->target().text())));
        Node* outer = nullptr;
        {
          const auto where = module.graph().inserting_before(call);
          outer = module.graph().get_attr(name);
        }
        outer->meta = inner->meta;
        add_operand(*call, outer);
        for (GraphModule* other : graphs) {
          Node* input = add_placeholder(other->graph(), name, inner->meta.val);
          if (other == graph) inner->replace_all_uses_with(input);
        }
        graph->graph().erase_node(inner);
      }
  }
}

}  // namespace

std::optional<ExportedProgram> lift_branch_constants(const ExportedProgram& program) {
  bool any = false;
  for_each_graph_module(const_cast<GraphModule&>(program.graph_module()), [&](GraphModule& m) {
    if (&m != &program.graph_module())
      for (const Node* n : m.graph().nodes()) any = any || reads_tensor(m, *n);
  });
  if (!any) return std::nullopt;
  ExportedProgram::Parts parts = program.parts();
  parts.graph_module = deep_copy(program.graph_module(), [](const Tensor& t) { return t; });
  lift_from_calls(*parts.graph_module);
  for (auto& constant : lift_constants(*parts.graph_module, parts.signature, {}, nullptr))
    parts.constants.push_back(std::move(constant));
  return ExportedProgram(std::move(parts));
}

}  // namespace calque
