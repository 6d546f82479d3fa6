#include "calque/export/export.h"

#include <algorithm>
#include <map>
#include <utility>

#include "calque/base/error.h"
#include "calque/export/fake_inputs.h"
#include "calque/graph/passes.h"
#include "calque/nn/functional_call.h"
#include "calque/trace/make_fx.h"
#include "export/capture/build.h"
#include "export/capture/runtime_asserts.h"
#include "export/capture/tracepoints.h"
#include "export/program/program_module.h"
#include "op/well_known.h"
#include "trace/capture_scope.h"

namespace calque {
namespace {

// A function as a module without state.
class FunctionModule : public Module {
 public:
  explicit FunctionModule(const TraceableFunction& function) : function_(function) {}
  std::string type_name() const override { return "torch.export." + function_.name; }
  std::vector<std::string> argument_names() const override { return function_.names; }
  ForwardSignature forward_signature() const override { return function_.signature; }
  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    std::vector<const Value*> places(function_.names.size(), nullptr);
    bind_arguments(args, kwargs, places);
    Values bound;
    for (size_t i = 0; i < places.size(); ++i) {
      const Values& defaults = function_.signature.defaults;
      const bool has_default = i + defaults.size() >= places.size();
      if (!places[i] && !has_default) throw UserError(function_.name + ": missing argument '" + function_.names[i] + "'");
      bound.push_back(places[i] ? *places[i] : defaults[i + defaults.size() - places.size()]);
    }
    return function_.body(bound);
  }

 private:
  const TraceableFunction& function_;
};

// The names of the arguments given, positional ones first; those of a variadic argument numbered.
struct InputNames {
  std::vector<KeyPath> paths;          // of the leaves
  std::vector<std::string> arg_names;  // as the unlifted module calls them
};

InputNames name_inputs(std::vector<std::string> names, const Values& args, const Kwargs& kwargs) {
  if (names.empty()) names = {"*args", "**kwargs"};
  InputNames out;
  std::vector<std::pair<Value, Value>> bound;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i >= names.size() || names[i].starts_with("**"))
      throw UserError("export: " + std::to_string(args.size()) + " positional arguments were given, the forward takes " +
                      std::to_string(i));
    if (!names[i].starts_with("*")) {
      bound.emplace_back(names[i], args[i]);
      out.arg_names.push_back(names[i]);
      continue;
    }
    const std::string base = names[i].substr(1);
    bound.emplace_back(base, tuple(Values(args.begin() + static_cast<std::ptrdiff_t>(i), args.end())));
    for (size_t k = i; k < args.size(); ++k) out.arg_names.push_back(base + "_" + std::to_string(k - i));
    break;
  }
  for (const auto& [name, value] : kwargs) {
    bound.emplace_back(name, value);
    out.arg_names.push_back(name);
  }
  for (auto& [path, leaf] : tree_flatten_with_path(dict(std::move(bound))).leaves) out.paths.push_back(std::move(path));
  return out;
}

Value input_tree(const Values& args, const Kwargs& kwargs) {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, value] : kwargs) items.emplace_back(name, value);
  return tuple({tuple(args), dict(std::move(items))});
}

std::pair<Values, Kwargs> from_input_tree(const Value& tree) {
  Kwargs kwargs;
  for (const auto& [key, value] : tree.to_items()[1].to_dict().items) kwargs.emplace_back(key.to_string(), value);
  return {tree.to_items()[0].to_items(), std::move(kwargs)};
}

// Buffers that the program assigned: which, and their new values. They are the last outputs of the trace.
struct AssignedBuffers {
  std::vector<size_t> inputs;
  Values values;
};

AssignedBuffers assigned_buffers(const Module& module, const std::vector<StateInput>& state, const Values& given) {
  AssignedBuffers out;
  for (size_t i = 0; i < state.size(); ++i) {
    if (state[i].kind != InputKind::buffer) continue;
    const Tensor* now = module.find_tensor(state[i].path);
    if (!now || now->is_same(given[i].to_tensor())) continue;
    out.inputs.push_back(i);
    out.values.emplace_back(*now);
  }
  return out;
}

// Their values become writes of the buffers, by the program itself: in the module that computed a value the write would be
// another call of that module.
void write_assigned(Graph& graph, const AssignedBuffers& assigned) {
  if (assigned.inputs.empty()) return;
  const std::vector<Node*> inputs = graph.placeholders();
  Node* output = graph.output_node();
  Values results = output->args()[0].to_items();
  const size_t first = results.size() - assigned.inputs.size();
  for (size_t i = 0; i < assigned.inputs.size(); ++i) {
    const auto where = graph.inserting_before(output);
    Node* copy = graph.call_function(ops().copy_, {inputs[assigned.inputs[i]], results[first + i]});
    if (!results[first + i].is_node()) continue;
    copy->meta = results[first + i].to_node()->meta;
    if (const auto& stack = copy->meta.nn_module_stack; stack && stack->size() > 1)
      copy->meta.nn_module_stack = std::make_shared<const ModuleStack>(1, stack->front());
  }
  results.resize(first);
  output->set_args({tuple(std::move(results))});
}

// The fake tensor for a parameter or buffer: its sizes are what they are.
Tensor fake_state(FakeMode& fake, const Tensor& tensor) {
  SymbolicContext fixed;
  fixed.sizes.assign(tensor.sym_sizes().size(), DimDynamic::static_size);
  return fake.from_tensor(tensor, Source::constant("state"), &fixed);
}

// Assigning to a constant while tracing would be lost, or worse, leave a fake tensor behind.
class ConstantWatch {
 public:
  explicit ConstantWatch(Module& module) : module_(module) {
    for (const auto& [path, tensor] : module.named_constants("", true, false)) before_.emplace_back(path, tensor);
  }
  void check() const {
    for (const auto& [path, tensor] : before_) {
      const Tensor* now = module_.find_tensor(path);
      if (now && now->is_same(tensor)) continue;
      module_.set_tensor(path, tensor);
      throw UserError(
          "The tensor attribute self." + path +
          " was assigned during export. Such attributes must be registered as buffers using the `register_buffer` API.");
    }
  }
  ~ConstantWatch() {
    for (const auto& [path, tensor] : before_)
      if (const Tensor* now = module_.find_tensor(path); !now || !now->is_same(tensor)) module_.set_tensor(path, tensor);
  }
  ConstantWatch(const ConstantWatch&) = delete;
  ConstantWatch& operator=(const ConstantWatch&) = delete;

 private:
  Module& module_;
  Module::NamedTensors before_;
};

// PyTorch's keys: L__self__, L__self__layers.0, and @1 behind that of a second call.
void name_module_stacks(GraphModule& module) {
  std::map<const ModuleStack*, std::shared_ptr<const ModuleStack>> renamed;
  for_each_graph_module(module, [&](GraphModule& m) {
    for (Node* n : m.graph().nodes()) {
      const auto& stack = n->meta.nn_module_stack;
      if (!stack || stack->empty() || stack->front().key.starts_with("L__self__") ||
          stack->front().key.starts_with("_empty_nn_module_stack"))
        continue;
      std::shared_ptr<const ModuleStack>& to = renamed[stack.get()];
      if (!to) {
        auto copy = std::make_shared<ModuleStack>(*stack);
        for (ModuleStackEntry& e : *copy) {
          const size_t at = e.key.find('@');
          e.key = "L__self__" + e.path + (at == std::string::npos ? "" : e.key.substr(at));
        }
        to = std::move(copy);
      }
      n->meta.nn_module_stack = to;
    }
  });
}

std::vector<ModuleCallEntry> module_calls(Module& module, ModuleCallSignature own,
                                          const std::map<std::string, ModuleCallSignature>& preserved) {
  std::vector<ModuleCallEntry> calls;
  std::map<std::string, ModuleCallSignature> left = preserved;
  for (const auto& [path, m] : module.named_modules("", false)) {
    ModuleCallEntry entry{path, {}};
    if (const auto it = left.find(path); it != left.end()) {
      entry.signature = std::move(it->second);
      left.erase(it);
    }
    calls.push_back(std::move(entry));
  }
  calls.at(0).signature = std::move(own);
  for (auto& [path, signature] : left) calls.push_back({path, std::move(signature)});
  return calls;
}

// Regions of another gradient mode or of autocast become calls; outputs may come from these then.
void wrap_regions(GraphModule& module, GraphSignature& signature) {
  const bool gradients = wrap_grad_mode_regions(module);
  const bool autocast = wrap_autocast_regions(module);
  if (!gradients && !autocast) return;
  const Values& outputs = module.graph().output_value().to_items();
  for (size_t i = 0; i < outputs.size(); ++i) signature.output_specs.at(i).arg = argument_spec(outputs[i]);
}

// PyTorch's strict export holds a module's constants as buffers for a while, and its signatures say so.
void mark_named_constants(GraphSignature& signature, const Module& module) {
  for (const auto& [path, tensor] : module.named_constants("", true, false))
    for (InputSpec& s : signature.input_specs)
      if (s.kind == InputKind::constant_tensor && s.target == path) s.persistent = true;
}

bool is_dead_detach(const Node& n) { return n.op() == &ops().detach; }

}  // namespace

bool is_exporting() { return thread_context().exports != 0; }

namespace {

// With other sizes in place of examples of 0 and 1 there is no program.
struct OnlyAtExample {
  std::string stand_ins, why;
};

ExportedProgram export_once(Module& module, const Values& args, const Kwargs& kwargs, const ExportOptions& options) {
  const CaptureScope inside({.exporting = true});
  const InputNames names = name_inputs(module.argument_names(), args, kwargs);
  const FakeInputs inputs =
      make_fake_inputs(module.argument_names(), args, kwargs, options.dynamic_shapes,
                       {options.prefer_deferred_runtime_asserts_over_guards, options.keep_dynamic_zero_one, options.strict});
  const std::shared_ptr<FakeMode>& fake = inputs.mode;
  const std::vector<StateInput> whole_state = state_inputs(module);
  std::vector<StateInput> state = options.strict ? without_aliases(whole_state) : whole_state;

  const FlatTree flat = tree_flatten(input_tree(inputs.args, inputs.kwargs));
  Values flat_inputs;
  for (const StateInput& s : state) flat_inputs.emplace_back(fake_state(*fake, s.tensor));
  flat_inputs.insert(flat_inputs.end(), flat.leaves.begin(), flat.leaves.end());

  TreeSpec out_spec;
  AssignedBuffers assigned;
  Tracepoints tracepoints(module, options.preserve_module_call_signature);
  const auto run = [&](const Values& values) -> Value {
    StateDict tensors;
    for (size_t i = 0; i < state.size(); ++i) tensors.set(state[i].path, values[i].to_tensor());
    const FunctionalCall exchanged(module, tensors, {.tie_weights = options.strict});
    const ConstantWatch constants(module);
    const Values leaves(values.begin() + static_cast<std::ptrdiff_t>(state.size()), values.end());
    const auto [call_args, call_kwargs] = from_input_tree(flat.spec.unflatten(leaves));
    const FlatTree result = tree_flatten(run_keeping_meta(module, call_args, call_kwargs));
    constants.check();
    out_spec = result.spec;
    assigned = assigned_buffers(module, state, values);
    Values results = result.leaves;
    results.insert(results.end(), assigned.values.begin(), assigned.values.end());
    return tuple(std::move(results));
  };
  TracedGraph traced;
  try {
    traced = make_fx_values(
        run, flat_inputs, {.mode = TracingMode::symbolic, .pre_dispatch = true, .record_module_stack = true, .fake = fake});
  } catch (const UserError& e) {
    if (inputs.stand_ins.empty()) throw;
    throw OnlyAtExample{inputs.stand_ins, e.what()};
  }
  if (std::string why = refused_example(inputs); !why.empty()) throw OnlyAtExample{inputs.stand_ins, std::move(why)};
  Graph& graph = traced.graph();
  write_assigned(graph, assigned);
  graph.eliminate_dead_code([](const Node& n) { return !is_dead_detach(n); });
  if (options.strict) keep_used_state(graph, state);
  solve_constraints(inputs);

  name_module_stacks(*traced.module);
  insert_runtime_asserts(*traced.module, *fake->env(), names.paths);
  insert_metadata_asserts(graph);

  ExportedProgram::Parts parts;
  parts.signature = make_signature(graph, state);
  parts.constants = lift_constants(*traced.module, parts.signature, constant_paths(module), fake.get());
  if (options.strict) mark_named_constants(parts.signature, module);
  wrap_regions(*traced.module, parts.signature);
  clear_boundary_meta(*traced.module);
  name_placeholders(*traced.module, parts.signature, names.paths);
  for (const StateInput& s : whole_state) {
    if (s.kind == InputKind::parameter) parts.parameters.insert(s.path);
    if (s.persistent) parts.state_dict.set(s.path, s.tensor);
  }
  for (const StateInput& s : state)
    if (!s.persistent) parts.constants.emplace_back(s.path, s.tensor);
  keep_requires_grad(graph, parts.signature, parts.state_dict, parts.constants, flat.leaves);
  parts.range_constraints = range_constraints(inputs);
  ModuleCallSignature own{{}, {}, flat.spec, out_spec, names.arg_names};
  parts.module_call_graph = module_calls(module, std::move(own), tracepoints.collect(*traced.module, parts.signature));
  parts.guards_code = guards_code(*fake->env());
  parts.example_inputs = ExampleInputs{args, kwargs};
  parts.graph_module = state_free(*traced.module);
  parts.dialect = Dialect::training;
  return ExportedProgram(std::move(parts));
}

}  // namespace

ExportedProgram export_program(Module& module, const Values& args, const Kwargs& kwargs, const ExportOptions& options) {
  OnlyAtExample only;
  try {
    return export_once(module, args, kwargs, options);
  } catch (OnlyAtExample& e) {
    only = std::move(e);
  }
  // The program fixes the sizes of 0 or 1, or is wrong whatever they are: the examples' own say which, and suggest what to change.
  ExportOptions at_example = options;
  at_example.keep_dynamic_zero_one = false;
  try {
    return export_once(module, args, kwargs, at_example);
  } catch (const UserError& e) {
    if (e.kind() != ErrorKind::constraint_violation) throw;
    std::string message = e.what();
    message.insert(std::min(message.find("\nSuggested fixes:"), message.size()),
                   "\n  - With other sizes (" + only.stand_ins + "): " + only.why);
    throw UserError(e.kind(), message);
  }
}

ExportedProgram export_program(const TraceableFunction& function, const Values& args, const Kwargs& kwargs,
                               const ExportOptions& options) {
  const auto module = std::make_shared<FunctionModule>(function);
  return export_program(*module, args, kwargs, options);
}

}  // namespace calque
