// The optimizers that change each element by itself. What they compute is kernel/cpu/optim; here are their options, states and
// the numbers of a step.
#include <cmath>
#include <limits>

#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/train/optimizer.h"
#include "kernel/cpu/optim/update.h"
#include "train/optimizer_support.h"

namespace calque {

struct ElementwiseOptimizer::Part : kernel::UpdatePart {};

namespace {

bool same_order(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

// The values in the order of memory of `like`, which is dense.
Tensor in_order_of(const Tensor& like, const Tensor& values) {
  return same_order(values, like) ? values : empty_like(like).copy_(values);
}

void check_sizes(const Tensor& param, const Tensor& state) {
  if (str(state.sym_sizes()) != str(param.sym_sizes()) || state.dtype() != param.dtype())
    throw UserError("optimizer step: a state has sizes " + str(state.sym_sizes()) + " and dtype " +
                    std::string(name(state.dtype())) + ", its parameter " + str(param.sym_sizes()) + " and " +
                    std::string(name(param.dtype())));
}

Tensor zero_step() { return tensor_of<float>({0.0F}, {1}).reshape({}); }

}  // namespace

namespace optim {

double advance_step(NamedValues& state) {
  const Tensor& step = state.at("step").to_tensor();
  step.add_(Scalar(1));
  return step.item<double>();
}

void check_at_least_0(double value, const char* what) {
  if (!(value >= 0)) throw UserError(std::string("Invalid ") + what + ": " + Value(value).str());
}

void refuse_unsupported(const NamedValues& options) {
  for (const char* name : {"differentiable", "capturable"})
    if (options.flag(name)) throw UserError(std::string("an optimizer with ") + name + "=True is not supported");
}

}  // namespace optim

void ElementwiseOptimizer::update(std::vector<Target>& targets) {
  std::vector<kernel::UpdatePart> parts[2];            // without and with rounding
  std::vector<std::pair<Tensor, Tensor>> copied_back;  // of parameters with holes
  for (const Target& target : targets) {
    Part part;
    prepare(target, part);
    Tensor param = target.param;
    if (!param.is_non_overlapping_and_dense()) {
      param = target.param.clone(MemoryFormat::contiguous);
      copied_back.emplace_back(target.param, param);
    }
    part.parameter = param;
    part.gradient = in_order_of(param, target.grad);
    check_sizes(param, target.grad);
    for (TensorBase& state : part.state) {
      if (!state.defined()) continue;
      const Tensor here = state;
      check_sizes(param, here);
      Tensor ordered = in_order_of(param, here);
      if (!ordered.is_same(here)) copied_back.emplace_back(here, ordered);
      state = std::move(ordered);
      here.storage()->bump_version();
    }
    target.param.storage()->bump_version();
    parts[target.group.options.flag("fused") ? 0 : 1].push_back(std::move(part));
  }
  for (const bool rounded : {false, true}) kernel::update(parts[rounded], rounded);
  for (const auto& [to, from] : copied_back) to.copy_(from);
}

// ---- SGD ----------------------------------------------------------------------------------------------------------------

SGD::SGD(ParamGroups params, const SGDOptions& o)
    : ElementwiseOptimizer({{"lr", o.lr},
                            {"momentum", o.momentum},
                            {"dampening", o.dampening},
                            {"weight_decay", o.weight_decay},
                            {"nesterov", o.nesterov},
                            {"maximize", o.maximize},
                            {"foreach", None{}},
                            {"differentiable", false},
                            {"fused", optim::flag_or_none(o.fused)}}) {
  add_param_groups(std::move(params));
}

void SGD::check(const NamedValues& o) const {
  optim::check_at_least_0(o.number("lr"), "learning rate");
  optim::check_at_least_0(o.number("momentum"), "momentum value");
  optim::check_at_least_0(o.number("weight_decay"), "weight_decay value");
  if (o.flag("nesterov") && (o.number("momentum") <= 0 || o.number("dampening") != 0))
    throw UserError("Nesterov momentum requires a momentum and zero dampening");
  optim::refuse_unsupported(o);
}

void SGD::start(const Target&) const {}

void SGD::prepare(const Target& target, Part& part) const {
  const NamedValues& o = target.group.options;
  kernel::SgdUpdate u{.lr = o.number("lr"),
                      .momentum = o.number("momentum"),
                      .dampening = o.number("dampening"),
                      .weight_decay = o.number("weight_decay"),
                      .nesterov = o.flag("nesterov"),
                      .maximize = o.flag("maximize"),
                      .first = false};
  if (u.momentum != 0) {
    const Value* buffer = target.state.find("momentum_buffer");
    u.first = !buffer || buffer->is_none();
    if (u.first) target.state.set("momentum_buffer", empty_like(target.param));
    part.state[0] = target.state.at("momentum_buffer").to_tensor();
  }
  part.numbers = u;
}

// ---- Adam, AdamW --------------------------------------------------------------------------------------------------------

Adam::Adam(ParamGroups params, const AdamOptions& o)
    : ElementwiseOptimizer({{"lr", o.lr},
                            {"betas", tuple({o.betas.first, o.betas.second})},
                            {"eps", o.eps},
                            {"weight_decay", o.weight_decay},
                            {"amsgrad", o.amsgrad},
                            {"maximize", o.maximize},
                            {"foreach", None{}},
                            {"capturable", false},
                            {"differentiable", false},
                            {"fused", optim::flag_or_none(o.fused)},
                            {"decoupled_weight_decay", o.decoupled_weight_decay}}) {
  add_param_groups(std::move(params));
}

AdamW::AdamW(ParamGroups params, const AdamWOptions& o)
    : Adam(std::move(params), {.lr = o.lr,
                               .betas = o.betas,
                               .eps = o.eps,
                               .weight_decay = o.weight_decay,
                               .amsgrad = o.amsgrad,
                               .maximize = o.maximize,
                               .fused = o.fused,
                               .decoupled_weight_decay = true}) {}

void Adam::check(const NamedValues& o) const {
  optim::check_at_least_0(o.number("lr"), "learning rate");
  optim::check_at_least_0(o.number("eps"), "epsilon value");
  optim::check_at_least_0(o.number("weight_decay"), "weight_decay value");
  const auto [beta1, beta2] = optim::pair_of(o, "betas");
  if (!(beta1 >= 0 && beta1 < 1)) throw UserError("Invalid beta parameter at index 0: " + Value(beta1).str());
  if (!(beta2 >= 0 && beta2 < 1)) throw UserError("Invalid beta parameter at index 1: " + Value(beta2).str());
  optim::refuse_unsupported(o);
}

void Adam::start(const Target& target) const {
  target.state.set("step", zero_step());
  target.state.set("exp_avg", zeros_like(target.param));
  target.state.set("exp_avg_sq", zeros_like(target.param));
  if (target.group.options.flag("amsgrad")) target.state.set("max_exp_avg_sq", zeros_like(target.param));
}

void Adam::prepare(const Target& target, Part& part) const {
  const NamedValues& o = target.group.options;
  const auto [beta1, beta2] = optim::pair_of(o, "betas");
  const double lr = o.number("lr"), decay = o.number("weight_decay"), step = optim::advance_step(target.state);
  const bool decoupled = o.flag("decoupled_weight_decay");
  part.numbers = kernel::AdamUpdate{.step_size = lr / (1 - std::pow(beta1, step)),
                                    .lerp_weight = 1 - beta1,
                                    .beta2 = beta2,
                                    .one_minus_beta2 = 1 - beta2,
                                    .correction2_sqrt = std::pow(1 - std::pow(beta2, step), 0.5),
                                    .eps = o.number("eps"),
                                    .weight_decay = decoupled ? 0 : decay,
                                    .shrink = decoupled && decay != 0 ? 1 - lr * decay : 1,
                                    .amsgrad = o.flag("amsgrad"),
                                    .maximize = o.flag("maximize")};
  part.state[0] = target.state.at("exp_avg").to_tensor();
  part.state[1] = target.state.at("exp_avg_sq").to_tensor();
  if (o.flag("amsgrad")) part.state[2] = target.state.at("max_exp_avg_sq").to_tensor();
}

// ---- Adagrad ------------------------------------------------------------------------------------------------------------

Adagrad::Adagrad(ParamGroups params, const AdagradOptions& o)
    : ElementwiseOptimizer({{"lr", o.lr},
                            {"lr_decay", o.lr_decay},
                            {"eps", o.eps},
                            {"weight_decay", o.weight_decay},
                            {"initial_accumulator_value", o.initial_accumulator_value},
                            {"foreach", None{}},
                            {"maximize", o.maximize},
                            {"differentiable", false},
                            {"fused", optim::flag_or_none(o.fused)}}) {
  add_param_groups(std::move(params));
  start_all();
}

void Adagrad::check(const NamedValues& o) const {
  optim::check_at_least_0(o.number("lr"), "learning rate");
  optim::check_at_least_0(o.number("lr_decay"), "lr_decay value");
  optim::check_at_least_0(o.number("weight_decay"), "weight_decay value");
  optim::check_at_least_0(o.number("initial_accumulator_value"), "initial_accumulator_value value");
  optim::check_at_least_0(o.number("eps"), "epsilon value");
  optim::refuse_unsupported(o);
}

void Adagrad::start(const Target& target) const {
  target.state.set("step", zero_step());
  target.state.set("sum", full_like(target.param, Scalar(target.group.options.number("initial_accumulator_value"))));
}

void Adagrad::prepare(const Target& target, Part& part) const {
  const NamedValues& o = target.group.options;
  const double step = optim::advance_step(target.state);
  part.numbers = kernel::AdagradUpdate{.lr = o.number("lr") / (1 + (step - 1) * o.number("lr_decay")),
                                       .weight_decay = o.number("weight_decay"),
                                       .eps = o.number("eps"),
                                       .maximize = o.flag("maximize")};
  part.state[0] = target.state.at("sum").to_tensor();
}

// ---- RMSprop ------------------------------------------------------------------------------------------------------------

RMSprop::RMSprop(ParamGroups params, const RMSpropOptions& o)
    : ElementwiseOptimizer({{"lr", o.lr},
                            {"momentum", o.momentum},
                            {"alpha", o.alpha},
                            {"eps", o.eps},
                            {"centered", o.centered},
                            {"weight_decay", o.weight_decay},
                            {"capturable", false},
                            {"foreach", None{}},
                            {"maximize", o.maximize},
                            {"differentiable", false}}) {
  add_param_groups(std::move(params));
}

void RMSprop::check(const NamedValues& o) const {
  optim::check_at_least_0(o.number("lr"), "learning rate");
  optim::check_at_least_0(o.number("eps"), "epsilon value");
  optim::check_at_least_0(o.number("momentum"), "momentum value");
  optim::check_at_least_0(o.number("weight_decay"), "weight_decay value");
  optim::check_at_least_0(o.number("alpha"), "alpha value");
  optim::refuse_unsupported(o);
}

void RMSprop::start(const Target& target) const {
  const NamedValues& o = target.group.options;
  target.state.set("step", zero_step());
  target.state.set("square_avg", zeros_like(target.param));
  if (o.number("momentum") > 0) target.state.set("momentum_buffer", zeros_like(target.param));
  if (o.flag("centered")) target.state.set("grad_avg", zeros_like(target.param));
}

void RMSprop::prepare(const Target& target, Part& part) const {
  const NamedValues& o = target.group.options;
  optim::advance_step(target.state);
  const double alpha = o.number("alpha");
  part.numbers = kernel::RmspropUpdate{.lr = o.number("lr"),
                                       .alpha = alpha,
                                       .one_minus_alpha = 1 - alpha,
                                       .eps = o.number("eps"),
                                       .weight_decay = o.number("weight_decay"),
                                       .momentum = o.number("momentum"),
                                       .centered = o.flag("centered"),
                                       .maximize = o.flag("maximize")};
  part.state[0] = target.state.at("square_avg").to_tensor();
  if (o.number("momentum") > 0) part.state[1] = target.state.at("momentum_buffer").to_tensor();
  if (o.flag("centered")) part.state[2] = target.state.at("grad_avg").to_tensor();
}

}  // namespace calque
