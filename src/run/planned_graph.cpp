#include "run/planned_graph.h"

#include <algorithm>

#include "calque/base/error.h"
#include "run/stored_weights.h"

namespace calque::run {
namespace {

Value state_of(const ExportedProgram& program, const InputSpec& spec) {
  if (const Tensor* t = program.state_dict().find(spec.target)) return *t;
  const auto& constants = program.constants();
  const auto it = std::find_if(constants.begin(), constants.end(), [&](const auto& c) { return c.first == spec.target; });
  if (it != constants.end()) return it->second;
  throw UserError("run: input " + spec.arg.name + " refers to " + spec.target + ", which the program does not hold");
}

// What the graph refers to itself: tensors, and the graphs of higher-order operators.
void add_attributes(const GraphModule& module, Attributes& to) {
  for (const Node* n : module.graph().nodes()) {
    if (n->kind() != NodeKind::get_attr && n->kind() != NodeKind::call_module) continue;
    const std::string& path = n->target().text();
    if (const Tensor* t = module.find_tensor(path))
      to.emplace_back(path, Attribute(*t));
    else
      to.emplace_back(path, Attribute(module.get_submodule_ptr(path)));
  }
}

}  // namespace

PlannedGraph planned_graph(const ExportedProgram& program) {
  const Graph& from = program.graph();
  const std::vector<Node*> inputs = from.placeholders();
  const std::vector<InputSpec>& specs = program.graph_signature().input_specs;
  const std::vector<OutputSpec>& outputs = program.graph_signature().output_specs;
  Graph graph;
  graph.set_shape_env(from.shape_env());
  NodeMapping mapping;
  Attributes state;
  std::set<std::string, std::less<>> written;
  const auto is_written = [&](const InputSpec& spec) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const OutputSpec& o) {
      return (o.kind == OutputKind::buffer_mutation || o.kind == OutputKind::parameter_mutation) && o.target == spec.target;
    });
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (specs.at(i).kind == InputKind::user_input) continue;
    const Value value = specs[i].kind == InputKind::token ? Value() : state_of(program, specs[i]);
    if (!value.is_tensor()) {
      mapping.emplace(inputs[i], value);
      continue;
    }
    Node* attribute = graph.get_attr(inputs[i]->name());
    attribute->meta = inputs[i]->meta;
    mapping.emplace(inputs[i], attribute);
    state.emplace_back(attribute->target().text(), Attribute(value.to_tensor()));
    if (is_written(specs[i])) written.insert(attribute->target().text());
  }
  if (const std::optional<Value> result = graph.graph_copy(from, mapping))
    graph.output(*result)->meta = from.output_node()->meta;
  add_attributes(program.graph_module(), state);
  return {std::make_shared<GraphModule>(state, std::move(graph)), std::move(written), StoredWeights::of(program)};
}

PlannedGraph planned_graph(const GraphModule& module) {
  return {std::make_shared<GraphModule>(static_cast<const Module&>(module), module.graph().copy()), {}};
}

}  // namespace calque::run
