// A module's state and constants as inputs of a graph.
#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "export/capture/build.h"
#include "op/well_known.h"

namespace calque {

std::vector<StateInput> state_inputs(const Module& module) {
  std::vector<StateInput> out;
  for (const auto& [path, tensor] : module.named_parameters("", true, false))
    out.push_back({InputKind::parameter, path, tensor, true});
  std::unordered_set<std::string> not_persistent;
  for (const auto& [prefix, m] : const_cast<Module&>(module).named_modules("", false))
    for (const auto& slot : m->buffer_slots())
      if (!slot->persistent) not_persistent.insert(prefix.empty() ? slot->name : prefix + "." + slot->name);
  for (const auto& [path, tensor] : module.named_buffers("", true, false))
    out.push_back({InputKind::buffer, path, tensor, !not_persistent.contains(path)});
  return out;
}

std::vector<StateInput> without_aliases(std::vector<StateInput> state) {
  std::unordered_set<const TensorImpl*> known;
  std::erase_if(state, [&](const StateInput& s) { return !known.insert(&s.tensor.impl()).second; });
  return state;
}

void keep_used_state(Graph& graph, std::vector<StateInput>& state) {
  const std::vector<Node*> inputs = graph.placeholders();
  std::unordered_map<const Node*, size_t> unseen;
  for (size_t i = 0; i < state.size(); ++i) unseen.emplace(inputs[i], i);
  std::vector<size_t> order;
  for (Node* n : graph.nodes())
    for (const Node* input : n->all_input_nodes())
      if (const auto it = unseen.find(input); it != unseen.end()) {
        order.push_back(it->second);
        unseen.erase(it);
      }
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return state[i].kind == InputKind::parameter; });
  std::vector<StateInput> used;
  if (!state.empty()) {
    Node* after = inputs[state.size() - 1]->next();
    for (const size_t i : order) {
      after->prepend(inputs[i]);
      used.push_back(std::move(state[i]));
    }
  }
  for (const auto& [node, i] : unseen) graph.erase_node(inputs[i]);
  state = std::move(used);
}

ConstantPaths constant_paths(const Module& module) {
  ConstantPaths out;
  for (const auto& [path, tensor] : module.named_constants("", true, false)) out[&tensor.impl()].push_back(path);
  return out;
}

namespace {

ArgumentSpec spec_of(const Value& val, std::string name) {
  if (val.is_tensor()) return {ArgumentKind::tensor, std::move(name)};
  if (val.kind() == Value::Kind::integer && val.to_sym_int().is_symbolic()) return {ArgumentKind::sym_int, std::move(name)};
  if (val.kind() == Value::Kind::floating && val.to_sym_float().is_symbolic())
    return {ArgumentKind::sym_float, std::move(name)};
  if (val.kind() == Value::Kind::boolean && val.to_sym_bool().is_symbolic())
    return {ArgumentKind::sym_bool, std::move(name)};
  return {ArgumentKind::constant, std::move(name), val};
}

}  // namespace

ArgumentSpec argument_spec(const Node& node) { return spec_of(node.meta.val, node.name()); }

ArgumentSpec argument_spec(const Value& output) {
  return output.is_node() ? argument_spec(*output.to_node()) : spec_of(output, "");
}

GraphSignature make_signature(const Graph& graph, const std::vector<StateInput>& state) {
  GraphSignature signature;
  const std::vector<Node*> inputs = graph.placeholders();
  internal_assert(inputs.size() >= state.size(), "each tensor of the module has an input");
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputSpec spec{InputKind::user_input, argument_spec(*inputs[i])};
    if (i < state.size()) {
      spec.kind = state[i].kind;
      spec.target = state[i].path;
      if (spec.kind == InputKind::buffer) spec.persistent = state[i].persistent;
    }
    signature.input_specs.push_back(std::move(spec));
  }
  for (const Value& output : graph.output_value().to_items())
    signature.output_specs.push_back({OutputKind::user_output, argument_spec(output)});
  return signature;
}

namespace {

// A literal of which nothing came: get_attr, lift_fresh_copy, detach_.
std::vector<Node*> unused_literal(Node* node) {
  const auto calls = [](const Node* n, const Operator& a, const Operator& b) { return n->op() == &a || n->op() == &b; };
  if (node->users().empty()) return {node};
  if (node->users().size() > 1) return {};
  Node* lift = *node->users().begin();
  if (!calls(lift, ops().lift_fresh, ops().lift_fresh_copy) || lift->users().size() > 1) return {};
  if (lift->users().empty()) return {lift, node};
  Node* detach = *lift->users().begin();
  if (!calls(detach, ops().detach, ops().detach_) || !detach->users().empty()) return {};
  return {detach, lift, node};
}

// Where the module that used a constant keeps it.
std::string path_in_module(const Node& node, const std::string& name) {
  const auto& stack = node.meta.nn_module_stack;
  return !stack || stack->empty() || stack->back().path.empty() ? name : stack->back().path + "." + name;
}

std::string flat(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

}  // namespace

std::vector<std::pair<std::string, Value>> lift_constants(GraphModule& module, GraphSignature& signature,
                                                          const ConstantPaths& paths, FakeMode* fake) {
  Graph& graph = module.graph();
  std::vector<std::pair<std::string, Value>> constants;
  std::vector<InputSpec>& specs = signature.input_specs;
  const std::vector<Node*> inputs = graph.placeholders();
  std::unordered_set<std::string> used;
  size_t lifted = 0;
  for (const InputSpec& s : specs) lifted += s.kind == InputKind::constant_tensor;
  size_t position = 0;
  Node* before = graph.nodes().front();
  for (size_t i = 0; i < specs.size(); ++i) {
    used.insert(specs[i].target);
    if (specs[i].kind != InputKind::user_input) continue;
    before = inputs[i];
    position = i;
    break;
  }

  std::unordered_map<const TensorImpl*, Node*> done;
  std::unordered_map<std::string, std::string> renamed;
  for (Node* n : graph.node_list()) {
    if (n->erased() || n->kind() != NodeKind::get_attr) continue;
    const Tensor* found = module.find_tensor(n->target().text());
    if (!found) continue;  // a graph
    if (const std::vector<Node*> unused = unused_literal(n); !unused.empty()) {
      for (Node* gone : unused) {
        if (gone == before) before = gone->next();
        graph.erase_node(gone);
      }
      continue;
    }
    const Tensor key = *found;
    const auto replace = [&](Node* placeholder) {
      n->replace_all_uses_with(placeholder);
      renamed[n->name()] = placeholder->name();
      if (n == before) before = n->next();
      graph.erase_node(n);
    };
    if (const auto it = done.find(&key.impl()); it != done.end()) {
      replace(it->second);
      continue;
    }
    std::string path;
    std::string name;
    const auto known = paths.find(&key.impl());
    if (known != paths.end()) {
      path = known->second[0];
      name = flat(path);
    } else {
      do {
        name = "lifted_tensor_" + std::to_string(lifted++);
        path = path_in_module(*n, name);
      } while (used.contains(path));
    }
    // A parameter that no module holds is a constant.
    const Tensor constant = key.requires_grad() && key.is_leaf() ? key.detach() : key;
    Node* placeholder = nullptr;
    {
      const auto where = graph.inserting_before(before);
      placeholder = graph.placeholder(name);
      placeholder->set_target(placeholder->name());
    }
    placeholder->meta = n->meta;
    placeholder->meta.nn_module_stack = nullptr;
    placeholder->meta.stack_trace = nullptr;
    placeholder->meta.location = {};
    placeholder->meta.val = fake ? Value(fake->from_constant(constant)) : Value(constant);
    done.emplace(&key.impl(), placeholder);
    specs.insert(specs.begin() + static_cast<std::ptrdiff_t>(position++),
                 {InputKind::constant_tensor, {ArgumentKind::tensor, placeholder->name()}, path});
    if (known != paths.end())
      for (const std::string& p : known->second) constants.emplace_back(p, constant);
    else
      constants.emplace_back(path, constant);
    replace(placeholder);
  }
  for (OutputSpec& s : signature.output_specs)
    if (const auto it = renamed.find(s.arg.name); it != renamed.end()) s.arg.name = it->second;
  return constants;
}

void keep_requires_grad(const Graph& graph, const GraphSignature& signature, const StateDict& state,
                        const std::vector<std::pair<std::string, Value>>& constants, const Values& user_inputs) {
  const std::vector<Node*> inputs = graph.placeholders();
  size_t next_user = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& spec = signature.input_specs[i];
    const Tensor* real = nullptr;
    if (spec.kind == InputKind::user_input) {
      const Value& given = user_inputs.at(next_user++);
      if (given.is_tensor()) real = &given.to_tensor();
    } else {
      real = state.find(spec.target);
      for (const auto& [path, constant] : constants)
        if (!real && path == spec.target && constant.is_tensor()) real = &constant.to_tensor();
    }
    if (real && inputs[i]->meta.val.is_tensor())
      inputs[i]->meta.val.to_tensor().impl().requires_grad = real->requires_grad();
  }
}

void clear_boundary_meta(GraphModule& module) {
  for_each_graph_module(module, [](GraphModule& m) {
    for (Node* n : m.graph().nodes()) {
      if (n->kind() != NodeKind::placeholder && n->kind() != NodeKind::output) continue;
      n->meta.nn_module_stack = nullptr;
      n->meta.stack_trace = nullptr;
      n->meta.location = {};
    }
  });
}

}  // namespace calque
