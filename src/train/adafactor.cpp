// The two Adafactors. Their second moments are kept as rows and columns, whose sums need the whole gradient: they are written with
// operators, in the order in which PyTorch's and transformers' call theirs.
#include <algorithm>
#include <cmath>

#include "calque/op/aten/like.h"
#include "calque/op/aten/zeros.h"
#include "calque/train/optimizer.h"
#include "train/optimizer_support.h"

namespace calque {

namespace optim {

std::pair<double, double> pair_of(const NamedValues& options, std::string_view name) {
  const Value& value = options.at(name);
  if (!value.is_sequence() || value.to_items().size() != 2)
    throw UserError("\"" + std::string(name) + "\" must be two numbers, found " + value.str());
  return {value.to_items()[0].to_float(), value.to_items()[1].to_float()};
}

}  // namespace optim

namespace {

// The mean of the squares along a dimension.
Tensor mean_square(const Tensor& grad, int64_t dim) {
  return grad.norm(Scalar(2), {dim}, true).square_().div_(Scalar(grad.size(dim)));
}

Tensor root_mean_square(const Tensor& t) {
  return t.norm(Scalar(2)) / Scalar(std::pow(static_cast<double>(t.numel()), 0.5));
}

// torch.finfo(dtype).eps
double epsilon(DType d) {
  return d == DType::float64 ? 0x1p-52 : d == DType::float16 ? 0x1p-10 : d == DType::bfloat16 ? 0x1p-7 : 0x1p-23;
}

bool is_half(const Tensor& t) { return t.dtype() == DType::float16 || t.dtype() == DType::bfloat16; }

}  // namespace

// ---- PyTorch's ------------------------------------------------------------------------------------------------------------

Adafactor::Adafactor(ParamGroups params, const AdafactorOptions& o)
    : Optimizer({{"lr", o.lr},
                 {"beta2_decay", o.beta2_decay},
                 {"eps", tuple({o.eps.first ? Value(*o.eps.first) : Value(), o.eps.second})},
                 {"d", o.d},
                 {"weight_decay", o.weight_decay},
                 {"foreach", None{}},
                 {"maximize", o.maximize}}) {
  add_param_groups(std::move(params));
}

void Adafactor::check(const NamedValues& o) const {
  const auto refuse = [](const std::string& text, double value) { throw UserError(text + Value(value).str()); };
  if (!(o.number("lr") >= 0)) refuse("Learning rate should be >= 0 but is: ", o.number("lr"));
  if (!(o.number("beta2_decay") <= 0)) refuse("beta2_decay should be <= 0 but is: ", o.number("beta2_decay"));
  const Value& eps = o.at("eps");
  if (!eps.is_sequence() || eps.to_items().size() != 2)
    throw UserError("Adafactor: \"eps\" must be two numbers, found " + eps.str());
  if (!eps.to_items()[0].is_none() && !(eps.to_items()[0].to_float() >= 0))
    refuse("epsilon1 should be >= 0 but is: ", eps.to_items()[0].to_float());
  if (!(eps.to_items()[1].to_float() >= 0)) refuse("epsilon2 should be >= 0 but is: ", eps.to_items()[1].to_float());
  if (!(o.number("d") >= 1)) refuse("Clipping threshold d should be >= 1 but is: ", o.number("d"));
  if (!(o.number("weight_decay") >= 0)) refuse("weight_decay should be >= 0 but is: ", o.number("weight_decay"));
}

void Adafactor::start(const Target& target) const {
  const Tensor& grad = target.grad;
  target.state.set("step", tensor_of<float>({0.0F}, {1}).reshape({}));
  if (grad.dim() > 1) {
    for (const auto& [name, dim] : {std::pair{"row_var", -1}, std::pair{"col_var", -2}}) {
      std::vector<SymInt> sizes(grad.sym_sizes().begin(), grad.sym_sizes().end());
      sizes[static_cast<size_t>(grad.dim() + dim)] = 1;
      target.state.set(name, zeros(sizes, grad.dtype()));
    }
  } else {
    target.state.set("variance", zeros_like(grad));
  }
}

void Adafactor::update(std::vector<Target>& targets) {
  for (const Target& target : targets) {
    const NamedValues& o = target.group.options;
    const Tensor& param = target.param;
    const Tensor grad = o.flag("maximize") ? target.grad.neg() : target.grad;
    const Values& eps = o.at("eps").to_items();
    const double eps1 = eps[0].is_none() ? epsilon(param.dtype()) : eps[0].to_float();
    const double step = optim::advance_step(target.state), lr = o.number("lr"), decay = o.number("weight_decay");
    const auto root = [](const Tensor& t) { return std::pow(static_cast<double>(t.numel()), 0.5); };

    const double fresh = std::pow(step, o.number("beta2_decay"));
    const double rho = std::min(lr, 1 / std::pow(step, 0.5));
    const double alpha = std::max(eps[1].to_float(), param.norm(Scalar(2)).item<double>() / root(param)) * rho;
    if (decay != 0) param.mul_(Scalar(1 - lr * decay));
    Tensor estimate;
    if (grad.dim() > 1) {
      const Tensor& rows = target.state.at("row_var").to_tensor();
      const Tensor& columns = target.state.at("col_var").to_tensor();
      rows.lerp_(mean_square(grad, -1), Scalar(fresh));
      columns.lerp_(mean_square(grad, -2), Scalar(fresh));
      estimate = rows.matmul(columns);
      estimate.div_(rows.mean({-2}, true).clamp_(Scalar(eps1)));
    } else {
      const Tensor& variance = target.state.at("variance").to_tensor();
      variance.lerp_(grad * grad, Scalar(fresh));
      estimate = variance.clone();
    }
    const Tensor change = estimate.clamp_(Scalar(eps1 * eps1)).rsqrt_();
    change.mul_(grad);
    const double below = std::max(1.0, change.norm(Scalar(2)).item<double>() / (root(change) * o.number("d")));
    param.add_(change, Scalar(-alpha / below));
  }
}

// ---- transformers' --------------------------------------------------------------------------------------------------------

TransformersAdafactor::TransformersAdafactor(ParamGroups params, const TransformersAdafactorOptions& o)
    : Optimizer({{"lr", o.lr ? Value(*o.lr) : Value()},
                 {"eps", tuple({o.eps.first, o.eps.second})},
                 {"clip_threshold", o.clip_threshold},
                 {"decay_rate", o.decay_rate},
                 {"beta1", o.beta1 ? Value(*o.beta1) : Value()},
                 {"weight_decay", o.weight_decay},
                 {"scale_parameter", o.scale_parameter},
                 {"relative_step", o.relative_step},
                 {"warmup_init", o.warmup_init}}) {
  if (o.lr && o.relative_step) throw UserError("Cannot combine manual `lr` and `relative_step=True` options");
  if (o.warmup_init && !o.relative_step) throw UserError("`warmup_init=True` requires `relative_step=True`");
  add_param_groups(std::move(params));
}

void TransformersAdafactor::check(const NamedValues& o) const {
  optim::pair_of(o, "eps");
  if (!o.flag("relative_step") && o.at("lr").is_none())
    throw UserError("Adafactor without relative_step needs a learning rate (lr)");
}

void TransformersAdafactor::start(const Target& target) const {
  const Tensor grad = is_half(target.grad) ? target.grad.to(DType::float32) : target.grad;
  target.state.set("step", 0);
  if (!target.group.options.at("beta1").is_none()) target.state.set("exp_avg", zeros_like(grad));
  if (grad.dim() >= 2) {
    std::vector<SymInt> rows(grad.sym_sizes().begin(), grad.sym_sizes().end() - 1);
    std::vector<SymInt> columns(grad.sym_sizes().begin(), grad.sym_sizes().end() - 2);
    columns.push_back(grad.sym_size(-1));
    target.state.set("exp_avg_sq_row", zeros(rows, grad.dtype()));
    target.state.set("exp_avg_sq_col", zeros(columns, grad.dtype()));
  } else {
    target.state.set("exp_avg_sq", zeros_like(grad));
  }
  target.state.set("RMS", 0);
}

namespace {

// What PyTorch's load_state_dict rounded to the parameter's dtype is float32 again.
Tensor state_like(NamedValues& state, const char* name, const Tensor& grad) {
  const Tensor& there = state.at(name).to_tensor();
  if (there.dtype() != grad.dtype()) state.set(name, there.to(grad.dtype()));
  return state.at(name).to_tensor();
}

// Learning rate of this step. It has the precision of the parameter's root mean square, a tensor.
double adafactor_lr(const NamedValues& o, double step, const Tensor& rms) {
  double lr;
  if (o.flag("relative_step"))
    lr = std::min(o.flag("warmup_init") ? 1e-6 * step : 1e-2, 1.0 / std::sqrt(step));
  else
    lr = o.number("lr");
  if (!o.flag("scale_parameter")) return lr;
  const double least = optim::pair_of(o, "eps").second;
  return rms.item<double>() > least ? (rms * Scalar(lr)).item<double>() : least * lr;
}

}  // namespace

void TransformersAdafactor::update(std::vector<Target>& targets) {
  for (const Target& target : targets) {
    const NamedValues& o = target.group.options;
    NamedValues& state = target.state;
    const Tensor grad = is_half(target.grad) ? target.grad.to(DType::float32) : target.grad;
    const Tensor param = is_half(target.param) ? target.param.to(DType::float32) : target.param;
    const double step = state.at("step").to_float() + 1;
    state.set("step", static_cast<int64_t>(step));
    const Tensor rms = root_mean_square(param);
    state.set("RMS", rms);
    const double lr = adafactor_lr(o, step, rms), kept = 1.0 - std::pow(step, o.number("decay_rate"));

    Tensor change = grad * grad + Scalar(optim::pair_of(o, "eps").first);
    if (grad.dim() >= 2) {
      const Tensor rows = state_like(state, "exp_avg_sq_row", grad), columns = state_like(state, "exp_avg_sq_col", grad);
      rows.mul_(Scalar(kept)).add_(change.mean({-1}), Scalar(1.0 - kept));
      columns.mul_(Scalar(kept)).add_(change.mean({-2}), Scalar(1.0 - kept));
      const Tensor by_row = (rows / rows.mean({-1}, true)).rsqrt_().unsqueeze(-1);
      change = by_row * columns.unsqueeze(-2).rsqrt();
      change.mul_(grad);
    } else {
      const Tensor squares = state_like(state, "exp_avg_sq", grad);
      squares.mul_(Scalar(kept)).add_(change, Scalar(1.0 - kept));
      change = squares.rsqrt().mul_(grad);
    }
    change.div_((root_mean_square(change) / Scalar(o.number("clip_threshold"))).clamp_(Scalar(1.0)));
    change.mul_(Scalar(lr));
    if (const Value& beta1 = o.at("beta1"); !beta1.is_none()) {
      const Tensor mean = state_like(state, "exp_avg", grad);
      mean.mul_(Scalar(beta1.to_float())).add_(change, Scalar(1 - beta1.to_float()));
      change = mean;
    }
    if (const double decay = o.number("weight_decay"); decay != 0) param.add_(param, Scalar(-decay * lr));
    param.add_(change.neg());
    if (!param.is_same(target.param)) target.param.copy_(param);
  }
}

}  // namespace calque
