// run_decompositions: the program's graph run again under a functional mode, so that nothing in it writes, with operators
// taken apart by a table on the way to the recorder.
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/export/program.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/trace/decompositions.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"
#include "export/capture/build.h"
#include "export/capture/retrace.h"
#include "export/capture/runtime_asserts.h"
#include "export/program/program_module.h"
#include "op/well_known.h"
#include "trace/capture_scope.h"
#include "trace/recorder.h"

namespace calque {
namespace {

// The table with what is taken apart whatever it says: what PyTorch takes apart before its table is asked (operators whose
// Python form stands for their gradient), and what the functional mode leaves that a functional program has no use for.
// A program with its backward pass keeps where values leave the reach of gradients, as an alias.
DecompositionTable with_aliases(const DecompositionTable& table, bool joint) {
  DecompositionTable out = table;
  for (const auto& [op, body] : core_aten_decompositions())
    if (op->has_tag(Tag::always_apart)) out.try_emplace(op, body);
  const auto clone = [](const Values& args) -> std::optional<Value> { return args.at(0).to_tensor().clone(); };
  const auto same = [joint](const Values& args) -> std::optional<Value> {
    return joint ? dispatch(ops().alias, {args.at(0)}) : args.at(0);
  };
  out.try_emplace(&ops().lift_fresh_copy, clone);
  out.try_emplace(&ops().detach, same);
  // Where the program asks for a size it is read, before what follows.
  for (const Operator* op : {&ops().sym_size, &ops().sym_stride}) out.erase(op);
  return out;
}

std::vector<std::pair<std::string, ValueRange>> updated_ranges(const ExportedProgram& program, const ShapeEnv* env) {
  if (!env) return {};
  std::vector<std::pair<std::string, ValueRange>> out;
  for (const auto& [symbol, range] : program.range_constraints())
    if (symbol.find_first_of(" *+-/(") != std::string::npos || !env->replacement(symbol)) out.emplace_back(symbol, range);
  for (const Symbol& s : env->symbols()) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& r) { return r.first == s.name; });
    if (!known && !s.is_float && !env->replacement(s.name)) out.emplace_back(s.name, s.range);
  }
  return out;
}

OutputKind mutation_of(InputKind kind, const std::string& name) {
  switch (kind) {
    case InputKind::buffer: return OutputKind::buffer_mutation;
    case InputKind::parameter: return OutputKind::parameter_mutation;
    case InputKind::user_input: return OutputKind::user_input_mutation;
    case InputKind::constant_tensor:
    case InputKind::custom_object:
    case InputKind::token: break;
  }
  throw UserError("run_decompositions: the program writes the constant " + name + "; register it as a buffer");
}

// A tensor whose new value is a copy of another: that one is its new value.
void drop_copies(Graph& graph, GraphSignature& signature) {
  const Values outputs = graph.output_value().to_items();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputKind kind = signature.output_specs[i].kind;
    if (kind != OutputKind::buffer_mutation && kind != OutputKind::parameter_mutation) continue;
    if (!outputs[i].is_node() || outputs[i].to_node()->erased() || outputs[i].to_node()->op() != &ops().copy ||
        !outputs[i].to_node()->args()[1].is_node())
      continue;
    Node* n = outputs[i].to_node();
    Node* source = n->args()[1].to_node();
    n->replace_all_uses_with(source);
    signature.replace_all_uses(n->name(), source->name());
    graph.erase_node(n);
  }
}

// The calls of preserved modules name nodes of the first graph: those of the second that were made for them, the last of
// each.
void update_module_calls(std::vector<ModuleCallEntry>& calls, Graph& graph, const GraphSignature& before,
                         const GraphSignature& after) {
  std::unordered_map<std::string, std::string> now;
  for (size_t i = 0; i < before.input_specs.size(); ++i) now[before.input_specs[i].arg.name] = after.input_specs[i].arg.name;
  for (Node* n : graph.nodes()) {
    if (const Value* origin = n->meta.find(from_node)) now[origin->to_string()] = n->name();
    std::erase_if(n->meta.custom, [](const auto& entry) { return entry.first == from_node; });
  }
  for (ModuleCallEntry& entry : calls) {
    if (!entry.signature) continue;
    for (auto* list : {&entry.signature->inputs, &entry.signature->outputs})
      for (ArgumentSpec& a : *list)
        if (const auto it = now.find(a.name); it != now.end()) a.name = it->second;
  }
}

struct Retraced {
  TracedGraph traced;
  std::vector<size_t> written;         // inputs, by position
  std::vector<size_t> differentiated;  // likewise: those whose gradients follow the outputs
};

// The output that is the loss. UserError unless it is a scalar and the only output that wants a gradient.
Tensor loss_among(const Values& outputs, size_t index) {
  if (index >= outputs.size() || !outputs[index].is_tensor())
    throw UserError("forward_backward: output " + std::to_string(index) + " is to be the loss, and the program has " +
                    std::to_string(outputs.size()) + " outputs, of which that is no tensor; say which one the loss is");
  const Tensor& loss = outputs[index].to_tensor();
  if (!guard_or(loss.sym_numel() == 1, false))
    throw UserError("forward_backward: the output marked as the loss (at index " + std::to_string(index) +
                    ") must be a scalar, but it has sizes " + str(loss.sym_sizes()) + "; reduce it with sum() or mean()");
  if (!loss.requires_grad())
    throw UserError("forward_backward: the loss (output " + std::to_string(index) +
                    ") depends on nothing that wants a gradient; say set_requires_grad() of parameters or inputs");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (i != index && outputs[i].is_tensor() && outputs[i].to_tensor().requires_grad())
      throw UserError(
          "forward_backward: output " + std::to_string(i) +
          " requires gradients and is not the loss, against which alone there is a backward pass; return it detached");
  return loss;
}

// The gradients of the inputs that want one, whose positions go to `of`.
TensorVector gradients_of(const Tensor& loss, const ExportedProgram& program, const Values& inputs,
                          std::vector<size_t>& of) {
  TensorVector leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor() || !inputs[i].to_tensor().requires_grad()) continue;
    leaves.push_back(inputs[i].to_tensor());
    of.push_back(i);
  }
  const TensorVector gradients = grad({loss}, leaves, {.allow_unused = true});
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].defined()) {
      const InputSpec& spec = program.graph_signature().input_specs[of[i]];
      throw UserError("forward_backward: " + (spec.target.empty() ? spec.arg.name : spec.target) +
                      " wants a gradient and the loss does not depend on it; say set_requires_grad(false) of it");
    }
  return gradients;
}

Retraced retrace(const ExportedProgram& program, const DecompositionTable& table, std::optional<size_t> loss) {
  const Graph& graph = program.graph();
  Values inputs;
  std::shared_ptr<FakeMode> fake;
  for (const Node* n : graph.placeholders()) {
    inputs.push_back(n->meta.val);
    if (!fake && n->meta.val.is_tensor())
      if (FakeMode* mode = fake_mode_of(n->meta.val.to_tensor())) fake = mode->shared_from_this();
  }
  for (const Node* n : graph.nodes())
    if (!fake && n->meta.val.is_tensor())
      if (FakeMode* mode = fake_mode_of(n->meta.val.to_tensor())) fake = mode->shared_from_this();
  if (!fake) fake = FakeMode::make({.env = ShapeEnv::make(), .static_shapes = true, .allow_non_fake_inputs = true});
  // Fresh tensors: the graph's own vals must not change under a trace that writes.
  std::unordered_map<const TensorImpl*, Tensor> fresh;
  for (Value& v : inputs) {
    if (!v.is_tensor()) continue;
    const Tensor& t = v.to_tensor();
    Tensor& made = fresh[&t.impl()];
    if (!made.defined()) {
      const Tensor own = fake->from_tensor(t);
      made = fake->make_fake(own.meta());
      made.impl().env = own.impl().env ? own.impl().env : made.impl().env;
      if (loss && t.requires_grad()) made.set_requires_grad();
    }
    v = made;
  }

  Retraced out;
  const auto run = [&](const Values& values) -> Value {
    const auto mode = FunctionalMode::make();
    Values wrapped;
    for (const Value& v : values) wrapped.push_back(mode->wrap(v));
    Values outputs;
    TensorVector gradients;
    {
      const FunctionalScope scope(*mode);
      const GradModeScope recorded(loss.has_value());
      outputs = Retracer(graph, &program.graph_module().as_owner(), fake->env().get(), true).run(wrapped).to_items();
      if (loss) gradients = gradients_of(loss_among(outputs, *loss), program, wrapped, out.differentiated);
    }
    Values results;
    for (size_t i = 0; i < wrapped.size(); ++i) {
      if (!wrapped[i].is_tensor() || !mode->was_written(wrapped[i].to_tensor())) continue;
      out.written.push_back(i);
      results.emplace_back(mode->unwrap(wrapped[i].to_tensor()));
    }
    for (const Value& v : outputs) results.push_back(mode->unwrap(v));
    for (const Tensor& g : gradients) results.push_back(mode->unwrap(g));
    return tuple(std::move(results));
  };
  const CompositesByTable composites(table);
  // With a backward pass PyTorch keeps no composite whole.
  const CaptureScope scope({.composites = loss ? nullptr : &composites, .python_bodies = true});
  out.traced = make_fx_values(
      run, inputs, {.mode = TracingMode::symbolic, .decompositions = &table, .record_module_stack = true, .fake = fake});
  return out;
}

}  // namespace

ExportedProgram ExportedProgram::run_decompositions(const DecompositionTable& table) const {
  return retraced(table, std::nullopt);
}

ExportedProgram ExportedProgram::forward_backward(size_t loss_index) const {
  return retraced(core_aten_decompositions(), loss_index);
}

ExportedProgram ExportedProgram::retraced(const DecompositionTable& given, std::optional<size_t> loss) const {
  const DecompositionTable table = with_aliases(given, loss.has_value());
  Retraced retraced = retrace(*this, table, loss);
  Graph& graph = retraced.traced.graph();
  graph.eliminate_dead_code();
  const std::shared_ptr<ShapeEnv> env = retraced.traced.env;
  const std::vector<KeyPath> user_inputs = user_input_paths(parts_.module_call_graph.at(0).signature.value());
  if (env) insert_runtime_asserts(*retraced.traced.module, *env, user_inputs);

  Parts parts = parts_;
  parts.signature = {};
  const std::vector<Node*> before = this->graph().placeholders();
  const std::vector<Node*> inputs = graph.placeholders();
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputSpec spec = parts_.signature.input_specs.at(i);
    if (!before[i]->meta.val.is_tensor()) inputs[i]->meta.val = before[i]->meta.val;
    spec.arg.name = inputs[i]->name();
    parts.signature.input_specs.push_back(std::move(spec));
  }
  const Values& outputs = graph.output_value().to_items();
  for (size_t i = 0; i < retraced.written.size(); ++i) {
    const InputSpec& written = parts_.signature.input_specs.at(retraced.written[i]);
    const bool is_input = written.kind == InputKind::user_input;
    parts.signature.output_specs.push_back({mutation_of(written.kind, written.target), argument_spec(outputs[i]),
                                            is_input ? inputs[retraced.written[i]]->name() : written.target});
  }
  for (size_t i = 0; i < parts_.signature.output_specs.size(); ++i) {
    OutputSpec spec = parts_.signature.output_specs[i];
    spec.arg = argument_spec(outputs[retraced.written.size() + i]);
    if (loss == i) spec.kind = OutputKind::loss_output;
    if (spec.kind == OutputKind::user_input_mutation)
      for (size_t k = 0; k < inputs.size(); ++k)
        if (parts_.signature.input_specs[k].arg.name == spec.target) spec.target = inputs[k]->name();
    parts.signature.output_specs.push_back(std::move(spec));
  }
  for (size_t i = 0; i < retraced.differentiated.size(); ++i) {
    const size_t at = retraced.differentiated[i];
    const InputSpec& of = parts_.signature.input_specs[at];
    const ArgumentSpec arg = argument_spec(outputs[retraced.written.size() + parts_.signature.output_specs.size() + i]);
    if (of.kind == InputKind::user_input)
      parts.signature.output_specs.push_back({OutputKind::gradient_to_user_input, arg, inputs[at]->name()});
    else
      parts.signature.output_specs.push_back({OutputKind::gradient_to_parameter, arg, of.target});
  }
  const ConstantPaths no_paths;
  auto constants = lift_constants(*retraced.traced.module, parts.signature, no_paths, retraced.traced.fake.get());
  parts.constants.insert(parts.constants.end(), constants.begin(), constants.end());
  clear_boundary_meta(*retraced.traced.module);
  name_placeholders(*retraced.traced.module, parts.signature, user_inputs);
  drop_copies(graph, parts.signature);
  update_module_calls(parts.module_call_graph, graph, parts_.signature, parts.signature);
  Values user_values;
  for (size_t i = 0; i < before.size(); ++i)
    if (parts_.signature.input_specs[i].kind == InputKind::user_input) user_values.push_back(before[i]->meta.val);
  keep_requires_grad(graph, parts.signature, parts.state_dict, parts.constants, user_values);
  parts.range_constraints = updated_ranges(*this, env.get());
  parts.graph_module = state_free(*retraced.traced.module);
  parts.dialect = Dialect::aten;
  return ExportedProgram(std::move(parts));
}

ExportedProgram ExportedProgram::run_decompositions() const { return run_decompositions(default_decompositions()); }

}  // namespace calque
