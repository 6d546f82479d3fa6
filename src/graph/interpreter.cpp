#include "calque/graph/interpreter.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/graph/stack_trace.h"
#include "calque/nn/module.h"
#include "calque/nn/signature.h"
#include "calque/op/aten/empty.h"
#include "calque/op/mode.h"
#include "graph/library_functions.h"
#include "graph/region_functions.h"
#include "graph/unknown_functions.h"

namespace calque {
namespace {

Value call_target(const Target& target, const Values& args, const Kwargs& kwargs) {
  if (const Operator* op = target.op()) return call(*op, args, kwargs);
  if (const Function* f = target.function()) return (*f)(args, kwargs);
  throw UserError(ErrorKind::unsupported_operator, "no function named " + target.text());
}

}  // namespace

Value module_value(std::string path) { return StructValue{"torch.nn.Module", std::move(path), {}, {}}; }
bool is_module_value(const Value& value) {
  return value.kind() == Value::Kind::structure && value.to_struct().type == "torch.nn.Module";
}

Value call_module_value(const Value& module, const Values& args, const Kwargs& kwargs) {
  if (!is_module_value(module)) throw UserError("expected a module, found " + std::string(Value::kind_name(module.kind())));
  const GraphOwner* owner = thread_context().running_owner;
  if (!owner)
    throw UserError("the module " + module.to_struct().context + " is called, but no graph is running whose owner holds it");
  return owner->call_module(module.to_struct().context, args, kwargs);
}

Interpreter::Interpreter(const Graph& graph, const GraphOwner* owner, bool release_values)
    : graph_(graph), owner_(owner ? owner : graph.owner()), release_values_(release_values) {
  if (!release_values_) return;
  last_uses_.resize(graph.id_bound());
  std::vector<bool> seen(graph.id_bound());
  for (const Node* n : graph.nodes().reversed())
    for (size_t i = 0; i < n->num_input_nodes(); ++i) {
      const Node* input = n->input_node(i);
      if (&input->graph() != &graph || seen[input->id()]) continue;
      seen[input->id()] = true;
      last_uses_[n->id()].push_back(input);
    }
}

size_t Interpreter::num_values() const { return static_cast<size_t>(std::count(present_.begin(), present_.end(), true)); }

Value Interpreter::run(const Values& inputs, const std::unordered_map<const Node*, Value>& initial) {
  check_targets();
  const ContextScope<&ThreadContext::running_owner> scope(owner_);
  RegionGuard regions;
  values_.assign(graph_.id_bound(), Value());
  present_.assign(graph_.id_bound(), false);
  for (const auto& [node, value] : initial) {
    values_[node->id()] = value;
    present_[node->id()] = true;
  }
  inputs_ = &inputs;
  next_input_ = 0;
  const auto release = [&](const Node& n) {
    values_[n.id()] = Value();
    present_[n.id()] = false;
  };
  Value result;
  for (const Node* n : graph_.nodes()) {
    if (present_[n->id()]) continue;
    current_ = n;
    try {
      values_[n->id()] = run_node(*n);
    } catch (Error& e) {
      e.prepend("while executing " + node_with_line(*n) + ":\n");
      throw;
    }
    present_[n->id()] = true;
    if (release_values_) {
      for (const Node* used : last_uses_[n->id()]) release(*used);
      if (n->users().empty() && n->kind() != NodeKind::output) release(*n);
    }
    if (n->kind() == NodeKind::output) {
      result = values_[n->id()];
      break;
    }
  }
  if (next_input_ < inputs.size())
    throw UserError("the graph takes " + std::to_string(next_input_) + " inputs, found " + std::to_string(inputs.size()));
  regions.done();
  return result;
}

Value Interpreter::run_node(const Node& node) {
  const Values args = fetch_args(node);
  const Kwargs kwargs = fetch_kwargs(node);
  switch (node.kind()) {
    case NodeKind::placeholder: return placeholder(node.target(), args, kwargs);
    case NodeKind::get_attr: return get_attr(node.target(), args, kwargs);
    case NodeKind::call_function: return call_function(node.target(), args, kwargs);
    case NodeKind::call_module: return call_module(node.target(), args, kwargs);
    case NodeKind::call_method: return call_method(node.target(), args, kwargs);
    case NodeKind::output: return output(node.target(), args, kwargs);
  }
  throw InternalError("a node of no kind");
}

void refuse_unknown_functions(const Graph& graph) {
  std::string missing;
  for (const Node* n : graph.nodes()) {
    if (n->kind() != NodeKind::call_function) continue;
    if (n->target().is_text()) missing += "\n  %" + n->name() + ": " + n->target().text();
    // An operator may be the first argument of a call (auto_functionalized).
    const Value* first = n->args().empty() ? nullptr : &n->args()[0];
    if (first && first->kind() == Value::Kind::structure && first->to_struct().type == "torch._ops.OpOverload" &&
        Target::resolve(first->to_struct().context).is_text())
      missing += "\n  %" + n->name() + ": " + first->to_struct().context;
  }
  if (!missing.empty())
    throw UserError(ErrorKind::unsupported_operator, "this graph uses operators that Calque does not have:" + missing);
}

void Interpreter::check_targets() const { refuse_unknown_functions(graph_); }

// ---- what the kinds do ------------------------------------------------------------------------------------------------

Value Interpreter::placeholder(const Target& target, const Values& args, const Kwargs&) {
  if (target.text().starts_with("*")) {  // *args: all that is left
    Values rest(inputs_->begin() + static_cast<std::ptrdiff_t>(next_input_), inputs_->end());
    next_input_ = inputs_->size();
    return list(std::move(rest));
  }
  if (next_input_ < inputs_->size()) return (*inputs_)[next_input_++];
  if (!args.empty()) return args[0];
  throw UserError("Expected positional argument for parameter " + target.text() + ", but one was not passed in!");
}

Value Interpreter::get_attr(const Target& target, const Values&, const Kwargs&) {
  if (!owner_) throw UserError("the attribute " + target.text() + " is needed, but the graph has no owner that holds it");
  return owner_->attr(target.text());
}

Value Interpreter::call_function(const Target& target, const Values& args, const Kwargs& kwargs) {
  return call_target(target, args, kwargs);
}

Value Interpreter::call_method(const Target& target, const Values& args, const Kwargs& kwargs) {
  return calque::call_method(target.text(), args, kwargs);
}

Value Interpreter::call_module(const Target& target, const Values& args, const Kwargs& kwargs) {
  if (!owner_) throw UserError("the module " + target.text() + " is called, but the graph has no owner that holds it");
  return owner_->call_module(target.text(), args, kwargs);
}

Value Interpreter::output(const Target&, const Values& args, const Kwargs&) { return args.empty() ? Value() : args[0]; }

// ---- arguments --------------------------------------------------------------------------------------------------------

Value Interpreter::fetch(const Value& value, const Node& user) const {
  if (!value.is_node()) {
    if (!value.is_container() && value.kind() != Value::Kind::slice) return value;
    return map_nodes(value, [&](Node* n) { return fetch(Value(n), user); });
  }
  const Node& n = *value.to_node();
  if (&n.graph() != &graph_ || !present_[n.id()])
    throw UserError("Node " + user.name() + " referenced nonexistent value " + n.name() +
                    "! Run Graph.lint() to diagnose such issues");
  return values_[n.id()];
}

Values Interpreter::fetch(const Values& values, const Node& user) const {
  Values out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back(fetch(v, user));
  return out;
}

Kwargs Interpreter::fetch_kwargs(const Node& node) const {
  Kwargs out;
  out.reserve(node.kwargs().size());
  for (const auto& [key, v] : node.kwargs()) out.emplace_back(key, fetch(v, node));
  return out;
}

// ---- single nodes -----------------------------------------------------------------------------------------------------

namespace {

// Shapes instead of numbers.
std::string brief(const Value& v) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (!t.defined()) return "None";
    return std::string(t.is_fake() ? "fake " : "") + std::string(name(t.dtype())) + str(t.sym_sizes());
  }
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) return v.str();
  const std::string text = join(v.to_items(), ", ", [](const Value& item) { return brief(item); });
  return "[" + text + "]";
}

Value run_kind(const Node& node, const Values& args, const Kwargs& kwargs, const GraphOwner* owner) {
  const auto need_owner = [&] {
    if (!owner) throw UserError("it refers to " + node.target().text() + ", but the graph has no owner that holds it");
  };
  switch (node.kind()) {
    case NodeKind::placeholder:
      if (!args.empty()) return args[0];
      throw UserError("a placeholder has no value of its own; give it one");
    case NodeKind::get_attr: need_owner(); return owner->attr(node.target().text());
    case NodeKind::call_function: return call_target(node.target(), args, kwargs);
    case NodeKind::call_method: return calque::call_method(node.target().text(), args, kwargs);
    case NodeKind::call_module: need_owner(); return owner->call_module(node.target().text(), args, kwargs);
    case NodeKind::output: return args.at(0);
  }
  throw InternalError("a node of no kind");
}

}  // namespace

Value run_node(const Node& node, const Values& args, const Kwargs& kwargs, const GraphOwner* owner) {
  if (!owner) owner = node.graph().owner();
  const ContextScope<&ThreadContext::running_owner> scope(owner);
  try {
    return run_kind(node, args, kwargs, owner);
  } catch (Error& e) {
    std::string given = join(args, ", ", [](const Value& v) { return brief(v); });
    for (const auto& [key, v] : kwargs) given += (given.empty() ? "" : ", ") + key + "=" + brief(v);
    e.prepend("while executing " + node_with_line(node) + "\non (" + given + "):\n");
    throw;
  }
}

Value fake_value(const Node& node, const GraphOwner* owner) {
  if (node.kind() == NodeKind::placeholder) return node.meta.val;
  const NodeFn value = [&](Node* input) {
    if (input->meta.val.is_none())
      throw UserError("fake_value: the input " + input->name() + " of " + node.name() +
                      " has no fake value; propagate shapes first");
    return input->meta.val;
  };
  return run_node(node, map_nodes(node.args(), value), map_nodes(node.kwargs(), value), owner);
}

namespace {

using Signature = std::vector<std::pair<std::string, std::optional<Value>>>;  // names and defaults

Signature signature_of(const Schema& schema) {
  Signature out;
  for (const SchemaArgument& a : schema.arguments)
    out.emplace_back(a.name == "self" ? "input" : a.name,
                     a.default_value ? std::optional<Value>(*a.default_value) : std::nullopt);
  return out;
}

// The overload that the packet's call on these values chooses; null when none fits.
const Operator* overload_of(const Node& node, const std::string& packet) {
  const NodeFn value = [](Node* n) { return n->meta.val.is_none() ? Value(empty({0})) : n->meta.val; };
  Kwargs kwargs = map_nodes(node.kwargs(), value);
  for (auto& [key, v] : kwargs)
    if (key == "input") key = "self";
  try {
    return &resolve_overload(packet, map_nodes(node.args(), value), kwargs);
  } catch (const UserError&) {
    return nullptr;
  }
}

std::optional<Signature> signature_of(const Node& node, const Module* root) {
  if (node.kind() == NodeKind::call_module) {
    const Module* module = root ? root->find_submodule(node.target().text()) : nullptr;
    if (!module) return std::nullopt;
    const std::vector<std::string> names = module->argument_names();
    const Values defaults = module->forward_signature().defaults;
    if (names.empty()) return std::nullopt;
    Signature out;
    for (size_t i = 0; i < names.size(); ++i)
      out.emplace_back(names[i], i + defaults.size() >= names.size()
                                     ? std::optional(defaults[i + defaults.size() - names.size()])
                                     : std::nullopt);
    return out;
  }
  if (node.kind() != NodeKind::call_function) return std::nullopt;
  if (const Operator* op = node.op()) return signature_of(op->schema());
  const Function* function = node.target().function();
  if (!function) return std::nullopt;
  if (const LibraryFunction* f = find_library_function(function->name())) {
    Signature out;
    for (const LibraryFunction::Parameter& p : f->parameters) out.emplace_back(p.name, p.default_value);
    return out;
  }
  if (function->packet().empty()) return std::nullopt;
  const Operator* op = overload_of(node, function->packet());
  return op ? std::optional(signature_of(op->schema())) : std::nullopt;
}

}  // namespace

std::optional<NormalizedArguments> normalized_arguments(const Node& node, const Module* root, bool only_keywords) {
  const std::optional<Signature> signature = signature_of(node, root);
  if (!signature || node.args().size() > signature->size()) return std::nullopt;
  NormalizedArguments out;
  size_t used = node.args().size();
  for (size_t i = 0; i < signature->size(); ++i) {
    const auto& [name, default_value] = (*signature)[i];
    const Value* given = i < node.args().size() ? &node.args()[i] : node.find_kwarg(name);
    if (!given && name == "input") given = node.find_kwarg("self");
    if (i >= node.args().size() && given) ++used;
    if (!given && !default_value) continue;
    if (!only_keywords && i < node.args().size())
      out.args.push_back(*given);
    else
      out.kwargs.emplace_back(name, given ? *given : *default_value);
  }
  if (used != node.args().size() + node.kwargs().size()) return std::nullopt;
  return out;
}

RealValues::RealValues(const Graph& graph, Values inputs, const GraphOwner* owner)
    : graph_(graph), owner_(owner ? owner : graph.owner()) {
  const std::vector<Node*> placeholders = graph.placeholders();
  if (inputs.size() > placeholders.size())
    throw UserError("the graph takes " + std::to_string(placeholders.size()) + " inputs, found " +
                    std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) values_.emplace(placeholders[i], std::move(inputs[i]));
}

const Value& RealValues::of(const Node& node) {
  if (&node.graph() != &graph_) throw UserError("real value: node " + node.name() + " belongs to another graph");
  // A stack of our own: graphs are deeper than a thread's stack.
  std::vector<const Node*> pending{&node};
  while (!pending.empty()) {
    const Node* n = pending.back();
    if (values_.contains(n)) {
      pending.pop_back();
      continue;
    }
    const size_t before = pending.size();
    for (size_t i = 0; i < n->num_input_nodes(); ++i)
      if (!values_.contains(n->input_node(i))) pending.push_back(n->input_node(i));
    if (pending.size() > before) continue;
    const NodeFn value = [&](Node* input) { return values_.at(input); };
    values_.emplace(n, run_node(*n, map_nodes(n->args(), value), map_nodes(n->kwargs(), value), owner_));
    pending.pop_back();
  }
  return values_.at(&node);
}

size_t count_calls(const Graph& graph) {
  size_t calls = 0;
  for (const Node* n : graph.nodes())
    calls +=
        n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_method || n->kind() == NodeKind::call_module;
  return calls;
}

std::map<std::string, size_t> count_targets(const Graph& graph) {
  std::map<std::string, size_t> counts;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_method || n->kind() == NodeKind::call_module)
      ++counts[n->target().str()];
  return counts;
}

// ---- Transformer --------------------------------------------------------------------------------------------------------

Value Transformer::make(NodeKind kind, const Target& target, const Values& args, const Kwargs& kwargs) {
  Node* n = new_graph_.create_node(kind, target, args, kwargs);
  n->meta = current_node().meta;
  return n;
}

Value Transformer::placeholder(const Target& target, const Values& args, const Kwargs& kwargs) {
  return make(NodeKind::placeholder, target, args, kwargs);
}
Value Transformer::get_attr(const Target& target, const Values& args, const Kwargs& kwargs) {
  return make(NodeKind::get_attr, target, args, kwargs);
}
Value Transformer::call_function(const Target& target, const Values& args, const Kwargs& kwargs) {
  return make(NodeKind::call_function, target, args, kwargs);
}
Value Transformer::call_method(const Target& target, const Values& args, const Kwargs& kwargs) {
  return make(NodeKind::call_method, target, args, kwargs);
}
Value Transformer::call_module(const Target& target, const Values& args, const Kwargs& kwargs) {
  return make(NodeKind::call_module, target, args, kwargs);
}

Graph Transformer::transform() {
  new_graph_ = Graph();
  const Value result = run();
  const auto nodes = graph().nodes();
  if (!nodes.empty() && nodes.back()->kind() == NodeKind::output) {
    Node* out = new_graph_.output(result);
    out->meta = nodes.back()->meta;
  }
  return std::move(new_graph_);
}

}  // namespace calque
