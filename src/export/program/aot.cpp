#include "calque/export/aot.h"

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/nn/functional_call.h"
#include "calque/op/tree.h"
#include "export/capture/build.h"

namespace calque {
namespace {

void check_loss(const Values& outputs, size_t index) {
  if (index >= outputs.size() || !outputs[index].is_tensor())
    throw UserError(
        fmt::format("aot_export_module: output {} is to be the loss, and the module gives {} outputs, of which that is "
                    "no tensor; say another output_loss_index",
                    index, outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (i != index && outputs[i].is_tensor() && outputs[i].to_tensor().requires_grad())
      throw UserError(fmt::format(
          "aot_export_module: found an output of the forward that requires gradients, that was not the scalar loss. "
          "The output at index {} is the loss, and the output at index {} requires gradients; return it detached",
          index, i));
  const Tensor& loss = outputs[index].to_tensor();
  if (!loss.requires_grad())
    throw UserError(fmt::format(
        "aot_export_module: the output at index {} was marked as the loss, but it does not require gradients", index));
  if (!guard_or(loss.sym_numel() == 1, false))
    throw UserError(
        fmt::format("aot_export_module: the output marked as the loss (at index {}) must be a scalar, but it has "
                    "sizes {}; reduce it with sum() or mean()",
                    index, str(loss.sym_sizes())));
}

OutputKind written_kind(InputKind kind) {
  switch (kind) {
    case InputKind::parameter: return OutputKind::parameter_mutation;
    case InputKind::buffer: return OutputKind::buffer_mutation;
    case InputKind::user_input:
    case InputKind::constant_tensor:
    case InputKind::custom_object:
    case InputKind::token: break;
  }
  return OutputKind::user_input_mutation;
}

}  // namespace

AotModule aot_export_module(Module& module, const Values& args, const AotModuleOptions& options) {
  if (options.trace_joint && !options.output_loss_index)
    throw UserError(
        "aot_export_module: with trace_joint one of the module's outputs must be a scalar loss; say which with "
        "output_loss_index");
  const std::vector<StateInput> state = state_inputs(module);
  std::vector<std::pair<Value, Value>> keywords;
  for (const auto& [name, value] : options.kwargs) keywords.emplace_back(name, value);
  const FlatTree given = tree_flatten(tuple({tuple(args), dict(std::move(keywords))}));
  Values primals;
  for (const StateInput& s : state) primals.emplace_back(s.tensor);
  primals.insert(primals.end(), given.leaves.begin(), given.leaves.end());

  const auto call = [&](const Values& flat) -> Value {
    StateDict tensors;
    for (size_t i = 0; i < state.size(); ++i) tensors.set(state[i].path, flat[i].to_tensor());
    const Values both =
        given.spec.unflatten(Values(flat.begin() + static_cast<std::ptrdiff_t>(state.size()), flat.end())).to_items();
    Kwargs kwargs;
    for (const auto& [key, value] : both.at(1).to_dict().items) kwargs.emplace_back(key.to_string(), value);
    const Value out = functional_call(module, tensors, both.at(0).to_items(), std::move(kwargs), {.tie_weights = false});
    if (options.trace_joint) check_loss(tree_leaves(out), *options.output_loss_index);
    return out;
  };
  JointOptions how{.decompositions = options.decompositions, .backward = options.trace_joint};
  how.loss = options.output_loss_index;
  JointGraph joint = trace_joint(call, primals, how);

  AotModule out{joint.module, {}};
  const std::vector<Node*> inputs = joint.module->graph().placeholders();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_state = i < state.size();
    InputSpec spec{is_state ? state[i].kind : InputKind::user_input, argument_spec(*inputs[i]),
                   is_state ? state[i].path : ""};
    if (is_state && state[i].kind == InputKind::buffer) spec.persistent = state[i].persistent;
    out.signature.input_specs.push_back(std::move(spec));
  }
  const Values& results = std::as_const(joint.module->graph()).output_value().to_items();
  size_t next = 0;
  for (const size_t i : joint.written) {
    const InputSpec& of = out.signature.input_specs[i];
    out.signature.output_specs.push_back(
        {written_kind(of.kind), argument_spec(results.at(next++)), of.target.empty() ? of.arg.name : of.target});
  }
  for (size_t i = 0; next < joint.num_forward; ++i)
    out.signature.output_specs.push_back(
        {options.trace_joint && options.output_loss_index == i ? OutputKind::loss_output : OutputKind::user_output,
         argument_spec(results.at(next++))});
  for (size_t i = 0; next < results.size(); ++i) {
    if (!primals[i].is_tensor() || !primals[i].to_tensor().requires_grad()) continue;
    const InputSpec& of = out.signature.input_specs[i];
    if (results[next].is_none())
      throw UserError("aot_export_module: " + (of.target.empty() ? of.arg.name : of.target) +
                      " wants a gradient and the loss does not depend on it; say set_requires_grad(false) of it");
    out.signature.output_specs.push_back(
        {of.kind == InputKind::user_input ? OutputKind::gradient_to_user_input : OutputKind::gradient_to_parameter,
         argument_spec(results.at(next++)), of.target.empty() ? of.arg.name : of.target});
  }
  return out;
}

}  // namespace calque
