#include "calque/trace/make_fx.h"

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "op/well_known.h"
#include "trace/capture_scope.h"
#include "trace/recorder.h"

namespace calque {

ProducedGuards TracedGraph::guards(const GuardsRequest& request) const {
  if (!env) throw UserError("guards: the function was traced without symbolic sizes; trace with TracingMode::symbolic");
  return produce_guards(*env, inputs, request);
}

Value TracedGraph::run(const Values& args) const {
  const FlatTree flat = tree_flatten(tuple(args));
  if (!(flat.spec == in_spec))
    throw UserError("the arguments have the structure " + flat.spec.str() + ", the function was traced with " +
                    in_spec.str());
  return Interpreter(graph()).run(flat.leaves);
}

bool is_accessor(const Node& n) { return n.op() && n.op()->has_tag(Tag::reads_geometry); }

namespace {

bool is_number(const Value& v) {
  return v.kind() == Value::Kind::integer || v.kind() == Value::Kind::floating || v.kind() == Value::Kind::boolean;
}

// Calls stay even where nobody uses their result, as in PyTorch; sizes and arithmetic on them go.
bool keeps(const Node& n) {
  if (n.is_impure()) return true;
  if (is_accessor(n) || n.kind() == NodeKind::get_attr) return false;
  if (!is_number(n.meta.val)) return true;
  for (const Node* input : n.all_input_nodes())
    if (!is_number(input->meta.val)) return true;
  return false;
}

// Sizes as what the guards have made of them since the node was recorded. Data that turned out to be fixed keep their symbols:
// the runtime asserts that say so need the places where these appear. They are printed as what they are fixed to.
SymInt settled(const ShapeEnv& env, SymInt number) {
  const SymInt now = env.simplify(number);
  const bool data_are_gone = number.expr()->has_unbacked() && !(now.is_symbolic() && now.expr()->has_unbacked());
  return data_are_gone ? number : now;
}

void refresh(Graph& graph, const ShapeEnv& env) {
  const auto& symbols = env.symbols();
  if (std::none_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return env.replacement(s.name).has_value(); }))
    return;
  // The tensors are the nodes' own.
  ExprMap<SymInt> known;  // few expressions, in many tensors
  const auto settle_all = [&](SymInts& numbers) {
    for (SymInt& number : numbers) {
      if (!number.is_symbolic()) continue;
      const auto [at, is_new] = known.try_emplace(number.expr());
      if (is_new) *at = settled(env, number);
      number = *at;
    }
  };
  const auto settle = [&](const Tensor& t) {
    if (!t.is_symbolic()) return;
    settle_all(t.impl().sizes);
    settle_all(t.impl().strides);
  };
  for (Node* n : graph.nodes()) {
    Value& val = n->meta.val;
    if (val.is_tensor()) {
      settle(val.to_tensor());
    } else if (val.kind() == Value::Kind::integer) {
      if (val.to_sym_int().is_symbolic()) val = settled(env, val.to_sym_int());
    } else if (val.kind() == Value::Kind::list || val.kind() == Value::Kind::tuple) {
      for (const Value& item : val.to_items())
        if (item.is_tensor()) settle(item.to_tensor());
    }
  }
}

// The mode that a trace in the fake or symbolic mode finds already: that of its arguments, or the one that is on. Null when it
// makes one of its own.
std::shared_ptr<FakeMode> fake_mode_for(const Values& args, const MakeFxOptions& options) {
  if (options.mode == TracingMode::real || options.env) return nullptr;
  FakeMode* found = nullptr;
  for (const Value& leaf : tree_leaves(tuple(args)))
    if (!found && leaf.is_tensor()) found = fake_mode_of(leaf.to_tensor());
  if (!found) found = active_fake_mode();
  if (!found) return nullptr;
  if (options.mode == TracingMode::symbolic && !found->env())
    throw UserError(
        "make_fx: the arguments are fake tensors of a mode without a shape environment, which has no symbols for their "
        "sizes; make the FakeMode with one (FakeOptions::env), or trace with TracingMode::fake");
  return found->shared_from_this();
}

}  // namespace

void remove_unused(Graph& graph) { graph.eliminate_dead_code(keeps); }

TracedGraph make_fx_values(const std::function<Value(const Values&)>& fn, const Values& args, const MakeFxOptions& options) {
  TracedGraph traced;
  traced.module = std::make_shared<GraphModule>(Graph());
  Graph& graph = traced.graph();
  traced.fake = options.fake ? options.fake : fake_mode_for(args, options);
  if (traced.fake)
    traced.env = traced.fake->env();
  else if (options.mode == TracingMode::symbolic)
    traced.env = options.env ? options.env : ShapeEnv::make();
  if (!traced.fake && options.mode != TracingMode::real)
    traced.fake = FakeMode::make({.env = traced.env ? traced.env : ShapeEnv::make(),
                                  .static_shapes = !traced.env,
                                  .allow_non_fake_inputs = options.allow_non_fake_inputs,
                                  .backed_items = true,
                                  .pytorch_guards = options.pytorch_guards});

  graph.set_shape_env(traced.env);

  Recorder recorder(*traced.module, options);
  const FlatTreeWithPaths flat = tree_flatten_with_path(tuple(args));
  traced.in_spec = flat.spec;
  Values leaves;
  leaves.reserve(flat.leaves.size());
  if (traced.env) traced.inputs.reserve(flat.leaves.size());
  for (const auto& [path, leaf] : flat.leaves) {
    const auto index = static_cast<size_t>(path[0].key.to_int());
    const std::string name = index < options.names.size() ? options.names[index] : "arg" + std::to_string(index);
    Node* node = graph.placeholder(name + "_1");
    Value value = leaf;
    Source source = Source::local(name);
    for (size_t i = 1; i < path.size(); ++i)
      source = path[i].kind == TreeKey::Kind::attribute    ? source.attribute(path[i].key.to_string())
               : path[i].key.kind() == Value::Kind::string ? source.item(path[i].key.to_string())
                                                           : source.item(path[i].key.to_int());
    if (options.fake) {
      node->meta.val = snapshot(value);
    } else if (leaf.is_tensor() && traced.fake) {
      const Tensor t = traced.fake->from_tensor(leaf.to_tensor(), source);
      value = t;
      if (traced.env) traced.inputs.push_back({source, TensorGeometry{t.impl().sizes, t.impl().strides, t.impl().offset}});
    } else if (leaf.kind() == Value::Kind::integer && options.mode == TracingMode::symbolic &&
               !leaf.to_sym_int().is_symbolic()) {
      SymbolRequest any_sign;
      any_sign.positive = false;
      const SymInt symbol = create_symbol(*traced.env, leaf.to_int(), source, any_sign);
      value = symbol;
      traced.inputs.push_back({source, symbol});
    }
    if (value.is_tensor() || value.expr()) node->meta.val = snapshot(value);
    recorder.track(value, node);
    leaves.push_back(std::move(value));
  }
  const Values inputs = flat.spec.unflatten(leaves).to_items();

  Value result;
  {
    const CaptureScope scope({.fake = traced.fake.get(), .recorder = &recorder, .modules = &recorder, .every_cast = true});
    result = fn(inputs);
  }
  const Value output = recorder.argument(result);
  if (options.runtime_asserts && traced.env)
    for (const RuntimeAssert& a : traced.env->runtime_asserts())
      graph.call_function(ops().assert_scalar,
                          {recorder.argument(a.condition), "Runtime assertion failed for expression " + a.condition.str()});
  graph.output(output);
  remove_unused(graph);
  if (traced.env) refresh(graph, *traced.env);
  graph.lint();
  return traced;
}

}  // namespace calque
