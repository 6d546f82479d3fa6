// The Tracer's way through a module or function: inputs, modules, results. tracer_calls.cpp has what calls become,
// tracer_arguments.cpp what values become.
#include "calque/trace/tracer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/tree.h"
#include "calque/sym/shape_env.h"
#include "trace/tracer_state.h"

namespace calque {

namespace {
constexpr const char* placeholder_type = "torch.fx._symbolic_trace.PHBase";
}  // namespace

bool is_fx_tracing() { return thread_context().symbolic_traces != 0; }

bool prefers_modules() {
  if (!is_fx_tracing()) return false;
  const auto& observers = thread_context().module_observers;
  const auto* tracer = observers.empty() ? nullptr : dynamic_cast<Tracer*>(observers[observers.size() - 1]);
  return tracer && tracer->allow_insert_stateless_mods;
}

Value PH() { return StructValue{placeholder_type, "null", {}, {}}; }
bool is_PH(const Value& v) { return v.kind() == Value::Kind::structure && v.to_struct().type == placeholder_type; }

std::string place(const std::source_location& where) {
  return where.line() == 0 ? std::string() : std::string(where.file_name()) + ":" + std::to_string(where.line());
}

Tracer::Active::Active(Tracer& tracer) : tracer_(tracer), capture_({.symbolic = &tracer, .modules = &tracer}) {
  tracer_.state_->self = std::make_shared<Tracer*>(&tracer);
}
Tracer::Active::~Active() {
  *tracer_.state_->self = nullptr;
  tracer_.state_->self.reset();
}

Tracer::Tracer() : state_(std::make_unique<State>()) {}
Tracer::~Tracer() = default;

Module& Tracer::root() const {
  if (!state_->root) throw UserError("Tracer::root: nothing has been traced yet");
  return *state_->root;
}
const std::shared_ptr<ShapeEnv>& Tracer::env() const { return state_->env; }
const std::unordered_map<std::string, Scope>& Tracer::node_name_to_scope() const { return state_->node_scopes; }
Graph& Tracer::graph() const {
  if (!state_->graph) throw UserError("Tracer::graph: no trace is running");
  return *state_->graph;
}
const Scope& Tracer::scope() const { return state_->scope; }

// ---- one trace --------------------------------------------------------------------------------------------------------

Graph Tracer::trace(Module& root, const TraceInputs& inputs, std::source_location where) {
  TraceableFunction forward{[&](const Values& args) { return root.forward_values(args, {}); }, root.argument_names(),
                            root.forward_signature(), root.class_name()};
  return run(&root, forward, inputs, where);
}

Graph Tracer::trace(const TraceableFunction& function, const TraceInputs& inputs, std::source_location where) {
  return run(nullptr, function, inputs, where);
}

Graph Tracer::run(Module* module, const TraceableFunction& function, const TraceInputs& inputs, std::source_location where) {
  if (state_->self)
    throw UserError("Tracer::trace: this tracer is tracing already; use another Tracer for what is traced within a trace");
  for (const Kwargs* given : {&inputs.concrete_args, &inputs.examples})
    for (const auto& [name, value] : *given)
      if (std::find(function.names.begin(), function.names.end(), name) == function.names.end())
        throw UserError("symbolic_trace: " + function.name + " has no argument named " + name);

  *state_ = State();
  State& s = *state_;
  Graph graph;
  s.graph = &graph;
  s.where = where;
  if (!module) s.function_root = std::make_shared<Module>();
  s.root = module ? module : s.function_root.get();
  for (const auto& [name, t] : s.root->named_parameters()) s.parameters.try_emplace(&t.impl(), name);
  for (const auto& [name, t] : s.root->named_buffers()) s.buffers.try_emplace(&t.impl(), name);
  for (const auto& [name, t] : s.root->named_constants()) s.plain_tensors.try_emplace(&t.impl(), name);
  for (const auto& [name, m] : s.root->named_modules()) s.module_paths.try_emplace(m, name);
  s.env = inputs.fake ? inputs.fake->env() : ShapeEnv::make();
  if (inputs.fake)
    s.fake = inputs.fake;
  else if (!inputs.examples.empty())
    s.fake = FakeMode::make({.env = s.env, .static_shapes = !inputs.symbolic, .allow_non_fake_inputs = true});

  const auto finish = [&] {
    s.graph = nullptr;
    s.tensors.clear();
    s.attributes.clear();
    s.module_paths.clear();
  };
  try {
    const Active active(*this);
    const Values args = make_inputs(function, inputs);
    Value result = function.body(args);
    if (graph.pytree_info()) {
      const FlatTree flat = tree_flatten(result);
      PyTreeInfo info = *graph.pytree_info();
      info.out_spec = flat.spec;
      graph.set_pytree_info(std::make_shared<const PyTreeInfo>(std::move(info)));
      result = list(flat.leaves);
    }
    create_node(NodeKind::output, "output", {create_arg(result)}, {});
  } catch (const UserError& error) {
    const std::string text = explained(error);
    finish();
    if (text.empty()) throw;
    throw UserError(ErrorKind::data_dependent, text);
  } catch (...) {
    finish();
    throw;
  }
  finish();
  return graph;
}

// ---- inputs -----------------------------------------------------------------------------------------------------------

namespace {

const Value* find_by_name(const Kwargs& values, const std::string& name) {
  for (const auto& [key, value] : values)
    if (key == name) return &value;
  return nullptr;
}

bool can_be_proxy(const Value& outline) {
  return outline.is_none() || outline.kind() == Value::Kind::integer || outline.kind() == Value::Kind::floating ||
         outline.is_sequence();
}

}  // namespace

Values Tracer::make_inputs(const TraceableFunction& function, const TraceInputs& inputs) {
  Values args;
  std::vector<TreeSpec> specs;
  bool nested = false;
  for (size_t i = 0; i < function.names.size(); ++i) {
    const Value* concrete = find_by_name(inputs.concrete_args, function.names[i]);
    if (concrete && inputs.drop_concrete_args) {
      args.push_back(*concrete);
      specs.emplace_back();
      continue;
    }
    args.push_back(make_input(function, i, inputs));
    specs.push_back(concrete ? tree_structure(*concrete, is_PH) : TreeSpec());
    nested = nested || !specs.back().is_leaf();
  }
  if (nested) {
    auto info = std::make_shared<PyTreeInfo>();
    info->orig_args = function.names;
    info->in_spec = TreeSpec::tuple(std::move(specs));
    graph().set_pytree_info(std::move(info));
  }
  return args;
}

Value Tracer::make_input(const TraceableFunction& function, size_t index, const TraceInputs& inputs) {
  const std::string& name = function.names[index];
  const ForwardSignature& signature = function.signature;
  const Value outline = index < signature.arguments.size() ? signature.arguments[index] : Value();
  const size_t first_default = function.names.size() - std::min(signature.defaults.size(), function.names.size());
  std::optional<Value> default_value;
  if (index >= first_default) default_value = signature.defaults[index - first_default];
  const Value* example = find_by_name(inputs.examples, name);

  const Value* concrete = find_by_name(inputs.concrete_args, name);
  if (!concrete) {
    if (can_be_proxy(outline)) return make_placeholder(name, default_value, outline, example, inputs.symbolic);
    if (!default_value)
      throw UserError(ErrorKind::data_dependent, "symbolic_trace: argument '" + name + "' of " + function.name + " is a " +
                                                     std::string(Value::kind_name(outline.kind())) +
                                                     ", which a trace cannot leave open; say its value in concrete_args");
    concrete = &*default_value;
  }
  const Values examples = example ? tree_leaves(*example) : Values();
  size_t count = 0;
  return tree_map(
      [&](const Value& leaf) -> Value {
        const bool is_whole = is_PH(*concrete);
        const Value* leaf_example = count < examples.size() ? &examples[count] : nullptr;
        const std::string target = name + "_" + std::to_string(++count);
        if (is_PH(leaf))
          return make_placeholder(target, default_value, is_whole ? outline : Value(), leaf_example, inputs.symbolic);
        const Value input = make_placeholder(target, default_value, Value(), nullptr, false);
        check_specialized(name, input, leaf);
        return leaf;
      },
      *concrete, is_PH);
}

Value Tracer::make_placeholder(const std::string& target, const std::optional<Value>& default_value, const Value& outline,
                               const Value* example, bool symbolic) {
  Values args;
  if (default_value) args.push_back(*default_value);
  ProxyLike like{outline, {}};
  if (example && example->is_tensor()) {
    like.value = state_->fake->from_tensor(example->to_tensor(), Source::local(target));
  } else if (example && example->kind() == Value::Kind::integer && symbolic) {
    like.value = create_symbol(*state_->env, example->to_int(), Source::local(target), {DimDynamic::duck, {}, false, true});
  } else if (example && example->is_container()) {
    like.value = state_->fake->from_value(*example);
  } else if (example) {
    throw UserError("symbolic_trace: the example of argument '" + target + "' is " + example->str() +
                    ", which is no tensor; say it in concrete_args");
  }
  return create_proxy(NodeKind::placeholder, target, args, {}, like);
}

// The graph says so when it is called with another value.
void Tracer::check_specialized(const std::string& name, const Value& input, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format: {
      const std::string text = value.kind() == Value::Kind::string ? value.to_string() : value.str();
      const Value equal = create_proxy(NodeKind::call_function, get_function("operator.eq"), {input, value});
      create_proxy(NodeKind::call_function, get_function("torch._assert"),
                   {equal, name + " has been specialized to have value " + text + " but got another value"});
      return;
    }
    case Value::Kind::none:
      create_proxy(NodeKind::call_function, get_function("torch.fx._symbolic_trace._assert_is_none"),
                   {input, name + " has been specialized to have value None but got another value"});
      return;
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::list:
    case Value::Kind::tuple:
    case Value::Kind::dict:
    case Value::Kind::structure: break;
  }
  warn("symbolic_trace: the graph cannot check that its input " + name + ", a " +
       std::string(Value::kind_name(value.kind())) + ", is what it was specialized for");
}

// ---- modules ----------------------------------------------------------------------------------------------------------

bool Tracer::is_leaf_module(Module& module, const std::string&) {
  if (allow_insert_stateless_mods && made_of_proxies(module)) return false;
  const std::string type = module.type_name();
  const bool is_library = type.starts_with("torch.nn.") || type.starts_with("torch.ao.nn.");
  return is_library && type != "torch.nn.modules.container.Sequential";
}

std::string Tracer::path_of_module(Module& module) {
  State& s = *state_;
  const auto it = s.module_paths.find(&module);
  if (it != s.module_paths.end()) return it->second;
  // It may have been put there since the trace began.
  if (s.root)
    for (const auto& [name, m] : s.root->named_modules()) s.module_paths.try_emplace(m, name);
  const auto again = s.module_paths.find(&module);
  if (again == s.module_paths.end() && allow_insert_stateless_mods && module.parameters().empty() &&
      module.buffers().empty())
    return insert(module);
  if (again == s.module_paths.end())
    throw UserError("symbolic_trace: a " + module.type_name() +
                    " is called that is not within the module being traced; register it as a child");
  return again->second;
}

bool Tracer::made_of_proxies(Module& module) const {
  for (const Module* part : module.modules())
    for (const auto* slots : {&part->parameter_slots(), &part->buffer_slots(), &part->constant_slots()})
      for (const auto& slot : *slots)
        if (slot->tensor.defined() && node_of(slot->tensor)) return true;
  return false;
}

std::string Tracer::insert(Module& module) {
  if (made_of_proxies(module)) return "";
  std::string name = module.class_name();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  size_t n = 0;
  const auto taken = [&](const std::string& path) {
    return state_->root->find_submodule(path) || state_->root->find_tensor(path);
  };
  while (taken(name + "_" + std::to_string(n))) ++n;
  const std::string path = name + "_" + std::to_string(n);
  std::shared_ptr<Module> kept = module.weak_from_this().lock();
  if (!kept)
    throw UserError("symbolic_trace: a " + module.type_name() +
                    " is called that is not within the module being traced; make it with std::make_shared, so that the "
                    "graph can keep it");
  state_->root->register_module(path, std::move(kept));
  state_->module_paths[&module] = path;
  return path;
}

std::optional<Value> Tracer::intercept(Module& module, const Values& args, const Kwargs& kwargs) {
  State& s = *state_;
  if (s.paused) return std::nullopt;
  if (s.passing == &module) {
    s.passing = nullptr;
    return std::nullopt;
  }
  if (!s.root) return std::nullopt;  // nodes are appended to a graph: there is no module to find paths in
  const Forward forward = [&](const Values& a, const Kwargs& k) {
    s.passing = &module;
    // What the body calls is written on lines of its own, not on that of the module's call.
    const ContextSwitch<&ThreadContext::call_site, nullptr> body;
    return module.call(a, k);
  };
  return call_module(module, forward, args, kwargs);
}

Value Tracer::call_module(Module& module, const Forward& forward, const Values& args, const Kwargs& kwargs) {
  State& s = *state_;
  const std::string path = path_of_module(module);
  // Restored also when the call throws and somebody else goes on.
  struct Restore {
    State& s;
    Scope scope = s.scope;
    std::shared_ptr<const ModuleStack> modules = s.modules;
    ~Restore() {
      s.scope = std::move(scope);
      s.modules = std::move(modules);
    }
  } restore{s};
  s.scope = {path, module.type_name()};
  const int64_t calls = s.num_calls[path]++;
  auto stack = s.modules ? std::make_shared<ModuleStack>(*s.modules) : std::make_shared<ModuleStack>();
  stack->push_back({calls > 0 ? path + "@" + std::to_string(calls) : path, path, s.scope.module_type});
  s.modules = std::move(stack);

  if (!is_leaf_module(module, path)) return forward(args, kwargs);
  ProxyLike like{module.forward_signature().result, {}};
  if (has_values(args, kwargs)) {
    const Paused paused(s);
    like.value = example_result(NodeKind::call_module, path, [&] { return module.call(args, kwargs); });
  }
  return create_proxy(NodeKind::call_module, path, args, kwargs, like);
}

// ---- front ------------------------------------------------------------------------------------------------------------

std::shared_ptr<GraphModule> symbolic_trace(Module& root, const TraceInputs& inputs, std::source_location where) {
  Tracer tracer;
  Graph graph = tracer.trace(root, inputs, where);
  return std::make_shared<GraphModule>(root, std::move(graph), root.class_name());
}

std::shared_ptr<GraphModule> symbolic_trace(const TraceableFunction& function, const TraceInputs& inputs,
                                            std::source_location where) {
  Tracer tracer;
  Graph graph = tracer.trace(function, inputs, where);
  return std::make_shared<GraphModule>(tracer.root(), std::move(graph), function.name);
}

GraphAppender::GraphAppender(Graph& graph) : tracer_(std::make_unique<Tracer>()) {
  tracer_->state_->graph = &graph;
  active_ = std::make_unique<Tracer::Active>(*tracer_);
}
GraphAppender::~GraphAppender() = default;
Tensor GraphAppender::proxy(Node* node) {
  if (&node->graph() != tracer_->state_->graph)
    throw UserError("GraphAppender::proxy: %" + node->name() + " belongs to another graph");
  return tracer_->proxy(node);
}
Node* GraphAppender::node(const Value& proxy) const {
  Node* node = tracer_->node_of(proxy);
  if (!node) throw UserError("GraphAppender::node: the value was not computed from proxies of this graph");
  return node;
}

}  // namespace calque
