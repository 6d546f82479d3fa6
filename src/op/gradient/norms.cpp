// A norm takes x = (input - mean) * rstd of what it normalises together and scales it. With G, the gradient times the scale, its
// gradient is rstd * P(G), where P(v) = v - mean(v) - x * mean(v * x) takes out what the statistics take out. P is its own adjoint,
// and d x = rstd * P(d input), d rstd = -rstd^2 * mean(x * d input): so the second gradients below.
#include "op/gradient/norms.h"

#include "calque/op/aten/normalization.h"
#include "calque/op/mode.h"

namespace calque::gradient {
namespace {

// What is normalised together lies in these dimensions.
struct Normalized {
  Tensor x, rstd;
  std::vector<int64_t> dims;

  Tensor mean(const Tensor& t) const { return t.mean(dims, true); }
  Tensor take_out(const Tensor& v) const { return v - mean(v) - x * mean(v * x); }
};

// The gradients of sum(v * gradient of the input) + sum(w * x * grad), where they have them.
struct SecondGradients {
  Tensor of_grad;  // without the scale
  Tensor of_input;
  Tensor of_scale;  // not yet summed
};

SecondGradients second_gradients(const Normalized& n, const Tensor& grad, const Tensor& scale, const Tensor& v,
                                 const Tensor& w) {
  SecondGradients out;
  const auto add = [](Tensor& to, const Tensor& t) { to = to.defined() ? to + t : t; };
  if (v.defined()) {
    const Tensor scaled = scale.defined() ? grad * scale : grad;
    const Tensor kept = n.take_out(v) * n.rstd;
    out.of_grad = scale.defined() ? kept * scale : kept;
    out.of_scale = kept * grad;
    const Tensor with_grad = n.mean(scaled * n.x), with_v = n.mean(v * n.x);
    const Tensor level = n.mean(scaled * v) - n.mean(scaled) * n.mean(v) - with_grad * with_v;
    out.of_input = -(n.rstd * n.rstd) * (n.x * level + n.take_out(scaled * with_v + v * with_grad));
  }
  if (w.defined()) {
    add(out.of_grad, w * n.x);
    add(out.of_input, n.rstd * n.take_out(grad * w));
  }
  return out;
}

std::vector<int64_t> dims_from(int64_t first, int64_t end) {
  std::vector<int64_t> dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}

Tensor summed(const Tensor& t, const std::vector<int64_t>& dims) {
  return !t.defined() || dims.empty() ? t : t.sum(dims, false);
}

BoolMask wanted(const Gradients& g) { return {g.needs("input"), g.needs("weight"), g.needs("bias")}; }

}  // namespace

// ---- layer norm -----------------------------------------------------------------------------------------------------
TensorVector of_layer_norm(const Gradients& g) {
  if (!g.grad().defined()) return {};
  auto [input, weight, bias] = native_layer_norm_backward(g.grad(), g["input"], g.sym_ints("normalized_shape"), g["result1"],
                                                          g["result2"], g["weight"], g["bias"], wanted(g));
  return {input, weight, bias};
}

TensorVector of_layer_norm_backward(const Gradients& g) {
  const Tensor &of_input = g.grad(0), &of_weight = g.grad(1), &of_bias = g.grad(2);
  const Tensor grad = g["grad_out"], input = g["input"], weight = g["weight"], rstd = g["rstd"];
  const int64_t rows = input.dim() - static_cast<int64_t>(g.sym_ints("normalized_shape").size());
  const Normalized n{(input - g["mean"]) * rstd, rstd, dims_from(rows, input.dim())};
  SecondGradients second = second_gradients(n, grad, weight, of_input, of_weight);
  if (of_bias.defined())
    second.of_grad = second.of_grad.defined() ? second.of_grad + of_bias : of_bias.expand(grad.sym_sizes());
  return {second.of_grad, second.of_input, weight.defined() ? summed(second.of_scale, dims_from(0, rows)) : Tensor()};
}

// ---- batch norm -----------------------------------------------------------------------------------------------------
TensorVector of_batch_norm(const Gradients& g, bool training) {
  if (!g.grad().defined()) return {};
  const auto running = [&](const char* name) { return g.has_argument(name) ? g[name] : Tensor(); };
  auto [input, weight, bias] =
      native_batch_norm_backward(g.grad(), g["input"], g["weight"], running("running_mean"), running("running_var"),
                                 g["result1"], g["result2"], training, g.number("eps"), wanted(g));
  return {input, weight, bias};
}

TensorVector of_batch_norm_backward(const Gradients& g) {
  const Tensor &of_input = g.grad(0), &of_weight = g.grad(1), &of_bias = g.grad(2);
  const Tensor grad = g["grad_out"], input = g["input"];
  SymInts channel(static_cast<size_t>(input.dim()), 1);
  channel[1] = input.sym_size(1);
  const auto along = [&](const Tensor& t) { return t.defined() ? t.reshape(channel) : t; };
  std::vector<int64_t> dims = dims_from(0, input.dim());
  dims.erase(dims.begin() + 1);
  const Tensor weight = along(g["weight"]), w = along(of_weight);
  const Tensor& v = of_input;
  SecondGradients second;
  if (g.flag("train")) {
    const Tensor rstd = along(g["save_invstd"]);
    second = second_gradients({(input - along(g["save_mean"])) * rstd, rstd, dims}, grad, weight, v, w);
  } else {
    // The statistics are constants.
    const Tensor rstd = (along(g["running_var"]) + Scalar(g.number("eps"))).rsqrt();
    const Tensor x = (input - along(g["running_mean"])) * rstd;
    if (v.defined()) {
      second.of_grad = weight.defined() ? v * rstd * weight : v * rstd;
      second.of_scale = v * rstd * grad;
    }
    if (w.defined()) {
      second.of_grad = second.of_grad.defined() ? second.of_grad + w * x : w * x;
      second.of_input = grad * w * rstd;
    }
  }
  if (of_bias.defined()) {
    const Tensor bias = along(of_bias);
    second.of_grad = second.of_grad.defined() ? second.of_grad + bias : bias.expand(grad.sym_sizes());
  }
  return {second.of_grad, second.of_input, weight.defined() ? summed(second.of_scale, dims) : Tensor()};
}

// ---- group norm -----------------------------------------------------------------------------------------------------
namespace {

// With operators that have gradients themselves.
TensorVector of_group_norm_by_operators(const Gradients& g) {
  const Tensor input = g["input"], mean = g["result1"], rstd = g["result2"], weight = g["weight"];
  const SymInt n = g.sym_int("N"), c = g.sym_int("C"), hw = g.sym_int("HxW"), groups = g.integer("group");
  const SymInt channels = floor_div(c, groups);
  const SymInts apart{n, groups, channels, hw};
  const Tensor r = rstd.reshape({n, groups, 1, 1});
  const Tensor centred = input.reshape(apart) - mean.reshape({n, groups, 1, 1});
  const Normalized norm{centred * r, r, {2, 3}};
  Tensor of_input, of_weight, of_bias;
  if (g.grad(0).defined()) {
    const Tensor grad = g.grad(0).reshape(apart);
    if (g.needs("input"))
      of_input = norm.take_out(weight.defined() ? grad * weight.reshape({1, groups, channels, 1}) : grad) * r;
    if (g.needs("weight")) of_weight = (grad * norm.x).sum({0, 3}, false).reshape({c});
    if (g.needs("bias")) of_bias = grad.sum({0, 3}, false).reshape({c});
  }
  if (g.needs("input")) {
    const auto add = [&](const Tensor& t) { of_input = of_input.defined() ? of_input + t : t.expand(apart); };
    const Scalar share(1.0 / static_cast<double>((channels * hw).guard_int()));
    // As PyTorch has it: one of the two alone does not count.
    const bool both = g.grad(1).defined() && g.grad(2).defined();
    if (both) add(g.grad(1).reshape({n, groups, 1, 1}) * share);
    if (both) add(-(g.grad(2).reshape({n, groups, 1, 1}) * r * r * r * centred * share));
    if (of_input.defined()) of_input = of_input.reshape(input.sym_sizes());
  }
  return {of_input, of_weight, of_bias};
}

}  // namespace

TensorVector of_group_norm(const Gradients& g) {
  if (grad_enabled() || g.grad(1).defined() || g.grad(2).defined()) return of_group_norm_by_operators(g);
  if (!g.grad().defined()) return {};
  const Tensor input = g["input"];
  const MemoryFormat format = input.suggest_memory_format();
  auto [of_input, of_weight, of_bias] = native_group_norm_backward(
      g.grad().contiguous(format), input.contiguous(format), g["result1"], g["result2"], g["weight"], g.sym_int("N"),
      g.sym_int("C"), g.sym_int("HxW"), g.integer("group"), wanted(g));
  return {of_input, of_weight, of_bias};
}

}  // namespace calque::gradient
