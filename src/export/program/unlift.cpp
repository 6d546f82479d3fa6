// ExportedProgram::module(): the program as a module that holds its state.
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/export/program.h"
#include "export/capture/build.h"
#include "export/program/program_module.h"
#include "op/well_known.h"

namespace calque {
namespace {

bool is_state(InputKind kind) { return kind != InputKind::user_input && kind != InputKind::token; }
bool is_mutation(OutputKind kind) {
  return kind == OutputKind::buffer_mutation || kind == OutputKind::parameter_mutation ||
         kind == OutputKind::user_input_mutation;
}

// A program's graph on its way to a module: its inputs that are state have become attributes.
struct Unlifted {
  Graph graph;
  std::unordered_map<std::string, Node*> attribute_of;  // by path
  std::unordered_map<std::string, Node*> input_of;      // by the name in the signature
  std::vector<Node*> user_inputs;
};

Unlifted with_attributes(const Graph& program, const std::vector<InputSpec>& specs) {
  Unlifted out{program.copy(), {}, {}, {}};
  const std::vector<Node*> placeholders = out.graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    Node* n = placeholders[i];
    if (specs.at(i).kind == InputKind::token)
      throw UserError(ErrorKind::unsupported_operator,
                      "module(): the program passes effect tokens (" + n->name() + "), which a module has no place for");
    if (!is_state(specs[i].kind)) {
      out.input_of.emplace(specs[i].arg.name, n);
      out.user_inputs.push_back(n);
      continue;
    }
    Node* attribute = nullptr;
    {
      const auto where = out.graph.inserting_after(n);
      attribute = out.graph.get_attr(specs[i].target);
    }
    attribute->meta = n->meta;
    n->replace_all_uses_with(attribute);
    out.graph.erase_node(n);
    out.attribute_of.emplace(specs[i].target, attribute);
  }
  return out;
}

// What the graph computes as the new value of a tensor is written back to it.
void write_back(Unlifted& program, const std::vector<OutputSpec>& specs) {
  Graph& graph = program.graph;
  Node* output = graph.output_node();
  const Values outputs = output->args()[0].to_items();
  std::unordered_map<const Node*, Node*> written;
  Values results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputSpec& spec = specs.at(i);
    if (!is_mutation(spec.kind)) {
      results.push_back(outputs[i]);
      continue;
    }
    const auto& from = spec.kind == OutputKind::user_input_mutation ? program.input_of : program.attribute_of;
    const auto at = from.find(spec.target);
    if (at == from.end())
      throw UserError("module(): the output " + spec.arg.name + " is written to " + spec.target +
                      ", which is no input of the program");
    const auto where = graph.inserting_before(output);
    Node* copy = graph.call_function(ops().copy_, {at->second, outputs[i]});
    if (outputs[i].is_node()) {
      copy->meta = outputs[i].to_node()->meta;
      written[outputs[i].to_node()] = copy;
    }
  }
  for (Value& v : results)
    if (v.is_node())
      if (const auto it = written.find(v.to_node()); it != written.end()) v = it->second;
  output->set_args({tuple(std::move(results))});
}

// The call that checks the inputs, behind the last of them.
void call_guards(Unlifted& program) {
  Graph& graph = program.graph;
  std::shared_ptr<const ModuleStack> root;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function && n->meta.nn_module_stack) {
      root = n->meta.nn_module_stack;
      break;
    }
  const auto where = graph.inserting_after(program.user_inputs.back());
  Values args;
  for (Node* n : program.user_inputs) args.emplace_back(n);
  graph.call_module("_guards_fn", std::move(args))->meta.nn_module_stack = root;
}

const Tensor* constant_tensor_at(const ExportedProgram::Parts& parts, const std::string& path) {
  for (const auto& [name, value] : parts.constants)
    if (name == path && value.is_tensor()) return &value.to_tensor();
  return nullptr;
}

void set_state(GraphModule& module, const ExportedProgram::Parts& parts) {
  for (const InputSpec& spec : parts.signature.input_specs) {
    if (!is_state(spec.kind)) continue;
    const Tensor* tensor = parts.state_dict.find(spec.target);
    if (!tensor) tensor = constant_tensor_at(parts, spec.target);
    if (!tensor)
      throw UserError("module(): the input " + spec.arg.name + " refers to " + spec.target +
                      ", which the program does not hold");
    switch (spec.kind) {
      case InputKind::parameter: module.set_attribute(spec.target, Attribute(*tensor, true)); break;
      case InputKind::buffer:
        module.set_attribute(spec.target, Attribute::buffer(*tensor, spec.persistent.value_or(true)));
        break;
      case InputKind::constant_tensor:
      case InputKind::custom_object:
      case InputKind::user_input:
      case InputKind::token:
        module.set_attribute(spec.target,
                             Attribute::constant(tensor->requires_grad() && tensor->is_leaf() ? tensor->detach() : *tensor));
        break;
    }
  }
  for (const auto& [path, value] : parts.constants)  // other names of the same constants
    if (value.is_tensor() && !module.find_tensor(path)) module.set_attribute(path, Attribute::constant(value.to_tensor()));
}

}  // namespace

std::shared_ptr<GraphModule> ExportedProgram::module(bool check_guards) const {
  const ModuleCallSignature& call = parts_.module_call_graph.at(0).signature.value();
  Unlifted unlifted = with_attributes(graph(), parts_.signature.input_specs);
  write_back(unlifted, parts_.signature.output_specs);
  PyTreeInfo info;
  info.orig_args = argument_names(call);
  info.in_spec = call.in_spec;
  info.out_spec = call.out_spec;
  unlifted.graph.set_pytree_info(std::make_shared<const PyTreeInfo>(std::move(info)));
  const bool guarded = check_guards && !unlifted.user_inputs.empty();
  if (guarded) call_guards(unlifted);

  const auto checks = std::make_shared<const InputChecks>(*this);
  auto module = std::make_shared<ProgramModule>(checks, writes_state() ? parts_.state_mutex : nullptr);
  set_state(*module, parts_);
  for (const Node* n : unlifted.graph.nodes())  // graphs of higher-order operators
    if (n->kind() == NodeKind::get_attr && !module->find_tensor(n->target().text()))
      module->copy_attribute(*parts_.graph_module, n->target().text());
  if (guarded)
    module->set_attribute("_guards_fn", Attribute(std::make_shared<GuardsModule>(*this, checks, user_input_paths(call))));
  module->set_graph(std::move(unlifted.graph));
  return module;
}

}  // namespace calque
