#include "calque/trace/joint.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/op/aten/like.h"
#include "calque/trace/functional.h"
#include "trace/capture_scope.h"

namespace calque {
namespace {

bool wants_gradient(const Value& v) { return v.is_tensor() && v.to_tensor().defined() && v.to_tensor().requires_grad(); }

// A real tensor's sizes are fixed; those of a fake one stay what they are.
Tensor as_fake(const Tensor& t, FakeMode& fake) {
  if (t.is_fake()) return fake.from_tensor(t);
  SymbolicContext fixed;
  fixed.sizes.assign(static_cast<size_t>(t.dim()), DimDynamic::static_size);
  fixed.constraint_sizes.resize(fixed.sizes.size());
  return fake.from_tensor(t.detach(), Source::constant("primal"), &fixed);
}

// The primals without data, each a leaf.
Values fake_primals(const Values& primals, FakeMode& fake) {
  std::unordered_map<const TensorImpl*, Tensor> made;
  Values out;
  for (const Value& v : primals) {
    if (!v.is_tensor() || !v.to_tensor().defined()) {
      out.push_back(v);
      continue;
    }
    const Tensor& t = v.to_tensor();
    Tensor& own = made[&t.impl()];
    if (!own.defined()) {
      const Tensor known = as_fake(t, fake);
      own = fake.make_fake(known.meta());
      own.impl().env = known.impl().env ? known.impl().env : own.impl().env;
      if (t.requires_grad()) own.set_requires_grad();
    }
    out.emplace_back(own);
  }
  return out;
}

std::shared_ptr<FakeMode> mode_for(const Values& primals) {
  for (const Value& v : primals)
    if (v.is_tensor() && v.to_tensor().defined())
      if (FakeMode* mode = fake_mode_of(v.to_tensor())) return mode->shared_from_this();
  return FakeMode::make({.env = ShapeEnv::make(), .static_shapes = true, .allow_non_fake_inputs = true});
}

// The function called once on tensors of a functional mode.
struct FunctionalRun {
  std::shared_ptr<FunctionalMode> mode = FunctionalMode::make();
  Values primals;
  Values outputs;  // flat
  TreeSpec out_spec;
  std::vector<size_t> written;

  FunctionalRun(const std::function<Value(const Values&)>& function, const Values& given) {
    for (const Value& v : given) primals.push_back(mode->wrap(v));
    const FunctionalScope scope(*mode);
    FlatTree flat = tree_flatten(function(primals));
    outputs = std::move(flat.leaves);
    out_spec = std::move(flat.spec);
    for (size_t i = 0; i < primals.size(); ++i)
      if (primals[i].is_tensor() && primals[i].to_tensor().defined() && mode->was_written(primals[i].to_tensor()))
        written.push_back(i);
  }

  bool shares_memory(const Value& output) const {
    return output.is_tensor() && output.to_tensor().defined() &&
           std::any_of(primals.begin(), primals.end(), [&](const Value& p) {
             return p.is_tensor() && p.to_tensor().defined() &&
                    p.to_tensor().storage().get() == output.to_tensor().storage().get();
           });
  }

  Values forward_values() const {
    Values out;
    for (const size_t i : written) out.emplace_back(mode->unwrap(primals[i].to_tensor()));
    for (const Value& v : outputs) out.push_back(mode->unwrap(v));
    return out;
  }

  // A gradient for each primal that wants one, undefined where there is none. Without tangents those are ones.
  TensorVector gradients(const TensorVector& of, TensorVector tangents) const {
    const FunctionalScope scope(*mode);
    for (size_t i = tangents.size(); i < of.size(); ++i)
      tangents.push_back(ones_like(of[i], {}, {}, {}, {}, MemoryFormat::preserve));
    TensorVector leaves;
    for (const Value& v : primals)
      if (wants_gradient(v)) leaves.push_back(v.to_tensor());
    if (of.empty() || leaves.empty()) return TensorVector(leaves.size());
    return grad(of, leaves, {.grad_outputs = std::move(tangents), .allow_unused = true});
  }
};

// What is known before anything is recorded: the tangents, for a start.
Values survey(JointGraph& out, const std::function<Value(const Values&)>& function, const Values& primals,
              const JointOptions& options) {
  const GradModeScope recorded(options.backward);
  const CaptureScope scope({.composites = nullptr, .python_bodies = true, .fake = out.fake.get()});
  const FunctionalRun run(function, primals);
  out.written = run.written;
  out.out_spec = run.out_spec;
  out.num_forward = run.written.size() + run.outputs.size();
  for (const size_t i : run.written)
    if (options.backward && wants_gradient(run.primals[i]))
      throw UserError(fmt::format(
          "trace_joint: the function writes argument {}, which wants a gradient; write a copy of it (clone()) instead", i));
  Values tangents;
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    if (run.shares_memory(run.outputs[i])) out.aliases.push_back(i);
    if (!options.backward || options.loss || !wants_gradient(run.outputs[i])) continue;
    const Tensor& like = run.mode->unwrap(run.outputs[i].to_tensor());
    Tensor tangent = out.fake->make_fake(like.meta());
    tangent.impl().env = like.impl().env;
    tangents.emplace_back(tangent);
    out.tangents.push_back(run.written.size() + i);
  }
  return tangents;
}

// One gradient or None for each primal; with a loss those that want one alone.
Values per_primal(const FunctionalRun& run, const TensorVector& gradients, bool all) {
  Values out;
  size_t next = 0;
  for (const Value& v : run.primals) {
    if (wants_gradient(v)) {
      const Tensor& g = gradients.at(next++);
      out.push_back(g.defined() ? Value(run.mode->unwrap(g)) : Value());
    } else if (all) {
      out.emplace_back();
    }
  }
  return out;
}

}  // namespace

JointGraph trace_joint(const std::function<Value(const Values&)>& function, const Values& given,
                       const JointOptions& options) {
  const NoTraceScope apart;
  JointGraph out;
  out.fake = mode_for(given);
  out.num_primals = given.size();
  const Values primals = fake_primals(given, *out.fake);
  const Values tangents = survey(out, function, primals, options);
  const bool nested = options.backward && !options.loss;

  const auto run_function = [&](const Values& args) -> Value {
    const Values& given_primals = nested ? args.at(0).to_items() : args;
    TensorVector seeds;
    if (nested)
      for (const Value& t : args.at(1).to_items()) seeds.push_back(t.to_tensor());
    const GradModeScope recorded(options.backward);
    const FunctionalRun run(function, given_primals);
    Values results = run.forward_values();
    if (!options.backward) return tuple(std::move(results));
    TensorVector of;
    if (options.loss) of.push_back(run.outputs.at(*options.loss).to_tensor());
    for (const size_t i : out.tangents) of.push_back(run.outputs.at(i - run.written.size()).to_tensor());
    TensorVector wrapped;
    for (const Tensor& t : seeds) wrapped.push_back(run.mode->wrap(t));
    for (Value& g : per_primal(run, run.gradients(of, wrapped), nested)) results.push_back(std::move(g));
    return nested ? list(std::move(results)) : tuple(std::move(results));
  };
  const CaptureScope scope({.composites = nullptr, .python_bodies = true});
  MakeFxOptions trace{.mode = TracingMode::symbolic,
                      .decompositions = options.decompositions,
                      .record_module_stack = true,
                      .fake = out.fake};
  if (nested) trace.names = {"primals", "tangents"};
  const TracedGraph traced = make_fx_values(run_function, nested ? Values{list(primals), list(tangents)} : primals, trace);
  out.module = traced.module;
  Graph& graph = out.module->graph();
  graph.eliminate_dead_code();
  for (Node* n : graph.placeholders()) n->set_target(Target(n->name()));
  if (nested) {
    auto info = std::make_shared<PyTreeInfo>();
    info->orig_args = trace.names;
    info->in_spec = traced.in_spec;
    info->out_spec = TreeSpec::tuple(
        {TreeSpec::tuple(std::vector<TreeSpec>(out.num_forward)), TreeSpec::tuple(std::vector<TreeSpec>(out.num_primals))});
    graph.set_pytree_info(std::move(info));
  }
  return out;
}

std::shared_ptr<GraphModule> aot_export_joint_simple(const std::function<Value(const Values&)>& function, const Values& args,
                                                     const AotJointOptions& options) {
  for (const Value& v : args)
    if (!tree_structure(v).is_leaf())
      throw UserError("aot_export_joint_simple requires individual inputs not to be pytrees, found " + v.str() +
                      "; flatten the arguments first (tree_flatten)");
  JointGraph joint =
      trace_joint(function, args, {.decompositions = options.decompositions, .backward = options.trace_joint});
  if (!joint.written.empty())
    throw UserError(
        fmt::format("aot_export_joint_simple does not support input mutations: the function writes argument {}; "
                    "return the new value instead",
                    joint.written.front()));
  if (!joint.aliases.empty())
    throw UserError(
        fmt::format("aot_export_joint_simple does not support outputs that alias inputs, as output {} does; clone() it",
                    joint.aliases.front()));
  if (joint.out_spec.is_leaf())
    throw UserError("aot_export_joint_simple requires outputs to be a single list or tuple, found one value");
  const auto& outputs = joint.out_spec.children();
  if (!std::all_of(outputs.begin(), outputs.end(), [](const TreeSpec& s) { return s.is_leaf(); }))
    throw UserError("aot_export_joint_simple requires individual outputs not to be pytrees, found " + joint.out_spec.str());
  return joint.module;
}

}  // namespace calque
