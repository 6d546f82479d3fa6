#include "run/passes/outline.h"

#include <algorithm>
#include <unordered_map>

namespace calque::run {

std::vector<Node*> inputs_of(const std::vector<Node*>& nodes) {
  std::vector<Node*> inputs;
  for (const Node* n : nodes)
    for (Node* input : n->all_input_nodes())
      if (std::find(nodes.begin(), nodes.end(), input) == nodes.end() &&
          std::find(inputs.begin(), inputs.end(), input) == inputs.end())
        inputs.push_back(input);
  return inputs;
}

void outline(PassInput& input, const std::vector<Node*>& nodes, const std::vector<Node*>& inputs,
             const std::string& prefix) {
  Graph& graph = input.module.graph();
  Node* const last = nodes.back();
  Graph inner;
  inner.set_shape_env(graph.shape_env());
  std::unordered_map<const Node*, Node*> inside;
  for (Node* outer : inputs) {
    Node* p = inner.placeholder(outer->name());
    p->meta.val = outer->meta.val;
    inside.emplace(outer, p);
  }
  for (const Node* n : nodes) inside.emplace(n, inner.node_copy(*n, [&](Node* x) { return Value(inside.at(x)); }));
  inner.output(inside.at(last));
  std::string path;
  size_t number = 0;
  do path = prefix + std::to_string(number++);
  while (input.module.find_tensor(path) || input.module.find_submodule(path));
  input.module.set_attribute(path, Attribute(std::make_shared<GraphModule>(std::move(inner))));
  const auto scope = graph.inserting_before(last);
  Node* call = graph.call_module(path, Values(inputs.begin(), inputs.end()));
  call->meta = last->meta;
  last->replace_all_uses_with(call);
  const std::string name = last->name();
  for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) graph.erase_node(*n);
  call->set_name(name);
}

}  // namespace calque::run
