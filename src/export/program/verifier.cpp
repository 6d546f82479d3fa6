#include "calque/export/verifier.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_set>

#include "calque/base/error.h"

namespace calque {
namespace {

// What graphs may call besides operators: Python's arithmetic on sizes and torch's functions for it.
// clang-format off
constexpr std::array<std::string_view, 40> allowed_functions = {
    "operator.getitem", "operator.add", "operator.mul", "operator.sub", "operator.truediv", "operator.ge", "operator.le", "operator.gt",
    "operator.lt", "operator.eq", "operator.ne", "operator.floordiv", "operator.mod", "operator.and_", "operator.or_", "operator.not_",
    "operator.pow", "operator.neg", "operator.abs", "operator.lshift", "operator.rshift", "math.ceil", "math.floor", "math.trunc",
    "builtins.round", "torch.sym_int", "torch.sym_float", "torch.sym_ite", "torch.sym_max", "torch.sym_min", "torch.sym_not", "torch.sym_sqrt",
    "torch._sym_sqrt", "torch.sym_sum", "torch._C._set_grad_enabled", "torch.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled",
    "torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast",
    "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless"};
// clang-format on

std::string text_of(const std::set<std::string>& names) {
  std::string out = "{";
  for (const std::string& n : names) out += (out.size() > 1 ? ", '" : "'") + n + "'";
  return out + "}";
}

void check_val(const Node& n) {
  if (!n.meta.val.is_none() || n.kind() == NodeKind::placeholder) return;
  // A node whose value is None may lack it. Only an operator that returns one tensor can be said to lack its value.
  const Operator* op = n.op();
  if (!op || op->schema().returns.size() != 1 || op->schema().returns[0].type.kind != SchemaType::Kind::tensor ||
      !n.meta.empty())
    return;
  if (n.users().empty()) return;
  throw UserError("Node.meta " + n.name() + " is missing val field.");
}

void check_call(const Node& n, Dialect dialect) {
  const Target& target = n.target();
  if (const Operator* op = target.op()) {
    const auto& args = op->schema().arguments;
    const bool writes = std::any_of(args.begin(), args.end(), [](const SchemaArgument& a) { return a.is_written(); });
    if (dialect != Dialect::training && writes)
      throw UserError("operator '" + target.str() + "' is not functional (node " + n.name() + ")");
    return;
  }
  const std::string name = target.qualified_name();
  // Operators that are not registered here keep their name.
  if (name.starts_with("torch.ops.") || target.is_text()) return;
  if (std::find(allowed_functions.begin(), allowed_functions.end(), name) != allowed_functions.end()) return;
  throw UserError("Operator '" + name + "' is not an allowed operator type (node " + n.name() +
                  "): a program calls operators, higher-order operators and arithmetic on sizes");
}

}  // namespace

void verify_graph(const GraphModule& module, Dialect dialect) {
  for (Module* m : const_cast<GraphModule&>(module).modules()) {
    const auto* gm = dynamic_cast<const GraphModule*>(m);
    if (!gm) continue;
    const bool is_top = gm == &module;
    gm->graph().lint();
    for (const Node* n : gm->graph().nodes()) {
      switch (n->kind()) {
        case NodeKind::call_module:
        case NodeKind::call_method:
          throw UserError("call_module is not valid: got a class '" + n->target().str() + "' (node " + n->name() + ")");
        case NodeKind::call_function:
          check_val(*n);
          check_call(*n, dialect);
          break;
        case NodeKind::get_attr: {
          const bool is_graph = gm->find_submodule(n->target().text()) != nullptr;
          if (is_top && !is_graph)
            throw UserError("Invalid get_attr on target " + n->target().text() + " (node " + n->name() +
                            "): in a program's own graph only graphs are attributes, tensors are inputs");
          break;
        }
        case NodeKind::placeholder:
        case NodeKind::output: break;
      }
    }
  }
}

void verify_module_call_graph(const ExportedProgram& program) {
  std::unordered_set<std::string> names;
  for (const Node* n : program.graph().nodes()) names.insert(n->name());
  for (const ModuleCallEntry& entry : program.module_call_graph()) {
    if (!entry.signature) continue;
    for (const ArgumentSpec& a : entry.signature->inputs)
      if (!a.name.empty() && !names.contains(a.name)) throw UserError("Input " + a.name + " does not exist in the graph.");
    for (const ArgumentSpec& a : entry.signature->outputs)
      if (!a.name.empty() && !names.contains(a.name)) throw UserError("Output " + a.name + " does not exist in the graph.");
  }
}

namespace {

void check_state(const ExportedProgram& program, const InputSpec& spec) {
  const auto is_constant = [&](const std::string& path) {
    return std::any_of(program.constants().begin(), program.constants().end(),
                       [&](const auto& c) { return c.first == path; });
  };
  const auto needs = [&](ArgumentKind kind, const char* what, const char* kind_name) {
    if (spec.arg.kind != kind)
      throw UserError(std::string(what) + " " + spec.arg.name + " is not a " + kind_name + " argument.");
    if (spec.target.empty()) throw UserError("InputSpec for " + spec.arg.name + " has no target.");
  };
  switch (spec.kind) {
    case InputKind::user_input: return;
    case InputKind::parameter: {
      needs(ArgumentKind::tensor, "Parameter", "tensor");
      if (!program.state_dict().contains(spec.target))
        throw UserError("Parameter " + spec.target + " is not in the state dict.");
      if (!program.parts().parameters.contains(spec.target))
        throw UserError("State dict entry for parameter " + spec.target +
                        " is not an instance of torch.nn.Parameter: it is a plain tensor.");
      return;
    }
    case InputKind::buffer:
      needs(ArgumentKind::tensor, "Buffer", "tensor");
      if (!spec.persistent) throw UserError("Buffer " + spec.target + " is missing a persistence flag");
      if (*spec.persistent && !program.state_dict().contains(spec.target) && !is_constant(spec.target))
        throw UserError("Buffer " + spec.target + " is not in the state dict.");
      if (!*spec.persistent && program.state_dict().contains(spec.target))
        throw UserError("Non-persistent buffer " + spec.target + " is in the state dict, it should not be.");
      return;
    case InputKind::constant_tensor:
      needs(ArgumentKind::tensor, "Constant tensor", "tensor");
      if (!is_constant(spec.target))
        throw UserError("Constant tensor " + spec.target + " is not in the constants dictionary.");
      return;
    case InputKind::custom_object:
      needs(ArgumentKind::custom_object, "Custom object", "custom object");
      if (!is_constant(spec.target))
        throw UserError("Custom object " + spec.target + " is not in the constants dictionary.");
      return;
    case InputKind::token: return;
  }
}

bool writes_state(OutputKind kind) {
  return kind == OutputKind::buffer_mutation || kind == OutputKind::parameter_mutation ||
         kind == OutputKind::user_input_mutation;
}

}  // namespace

void verify_signature(const ExportedProgram& program) {
  const GraphSignature& signature = program.graph_signature();
  const std::vector<Node*> inputs = program.graph().placeholders();
  if (inputs.size() != signature.input_specs.size()) {
    std::set<std::string> nodes, specs, only_nodes, only_specs;
    for (const Node* n : inputs) nodes.insert(n->name());
    for (const InputSpec& s : signature.input_specs) specs.insert(s.arg.name);
    std::set_difference(nodes.begin(), nodes.end(), specs.begin(), specs.end(), std::inserter(only_nodes, only_nodes.end()));
    std::set_difference(specs.begin(), specs.end(), nodes.begin(), nodes.end(), std::inserter(only_specs, only_specs.end()));
    throw UserError("Number of graph inputs (" + std::to_string(inputs.size()) +
                    ") does not match number of inputs in the graph signature (" +
                    std::to_string(signature.input_specs.size()) + ")\nPlaceholders missing input_specs: " +
                    text_of(only_nodes) + "\nInput_specs missing placeholders: " + text_of(only_specs));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& spec = signature.input_specs[i];
    const bool named = spec.arg.kind != ArgumentKind::constant && spec.arg.kind != ArgumentKind::custom_object &&
                       spec.arg.kind != ArgumentKind::token;
    if (named && spec.arg.name != inputs[i]->name())
      throw UserError("Input spec name " + spec.arg.name + " does not match node name " + inputs[i]->name());
    check_state(program, spec);
  }

  const Node* output = program.graph().output_node();
  const Values outputs = output->args().empty() ? Values{} : output->args()[0].to_items();
  if (outputs.size() != signature.output_specs.size())
    throw UserError("Number of output nodes " + std::to_string(outputs.size()) +
                    " is different Than the number of outputs specified by the graph signature: " +
                    std::to_string(signature.output_specs.size()));
  const std::vector<std::string> buffers = signature.buffers();
  const std::vector<std::string> parameters = signature.parameters();
  const auto contains = [](const std::vector<std::string>& list, const std::string& s) {
    return std::find(list.begin(), list.end(), s) != list.end();
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputSpec& spec = signature.output_specs[i];
    const std::string found = outputs[i].is_node() ? outputs[i].to_node()->name() : "";
    if (spec.kind == OutputKind::buffer_mutation && !contains(buffers, spec.target))
      throw UserError("Buffer output " + spec.arg.name + " does not point to a buffer that exists: " + spec.target);
    if (spec.kind == OutputKind::parameter_mutation && !contains(parameters, spec.target))
      throw UserError("Parameter output " + spec.arg.name + " does not point to a parameter that exists: " + spec.target);
    if (spec.kind == OutputKind::user_input_mutation) {
      const auto user = std::find_if(signature.input_specs.begin(), signature.input_specs.end(), [&](const InputSpec& s) {
        return s.kind == InputKind::user_input && s.arg.name == spec.target;
      });
      if (user == signature.input_specs.end())
        throw UserError("User input output " + spec.arg.name +
                        " does not point to a user input that exists: " + spec.target);
    }
    if (spec.arg.kind == ArgumentKind::constant || spec.arg.kind == ArgumentKind::token || spec.kind == OutputKind::token)
      continue;
    if (spec.arg.name == found) continue;
    if (writes_state(spec.kind))
      throw UserError("Mutation node " + found + " is not what the signature has in its place: " + spec.arg.name);
    throw UserError(
        "User output " + found +
        " is not in the correct order or is not found in the exported program's user_output list: " + spec.arg.name);
  }
}

void verify(const ExportedProgram& program) {
  verify_graph(program.graph_module(), program.dialect());
  verify_module_call_graph(program);
  verify_signature(program);
}

}  // namespace calque
