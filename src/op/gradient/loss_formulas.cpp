#include "op/gradient/loss_formulas.h"

#include "calque/op/aten/like.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/losses_backward.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"

namespace calque::gradient {

namespace {

constexpr int64_t none = 0, mean = 1;

Tensor weighted(const Gradients& g, const Tensor& t) {
  const Tensor weight = g["weight"];
  return weight.defined() ? t.mul(weight) : t;
}
// Written over: nothing else knows the tensor yet.
Tensor averaged(const Gradients& g, const Tensor& t, std::string_view over) {
  if (g.integer("reduction") != mean) return t;
  static OperatorByName op("aten::div_.Scalar");
  return call(op.get(), {t, Value(Scalar(product(g.sizes(over))))}).to_tensor();
}
Tensor mean_of(const Gradients& g, const Tensor& t) {
  return g.integer("reduction") == mean ? gradient::over(t, Scalar(product(g.sizes("self")))) : t;
}
Tensor of_given(const Gradients& g, const Tensor& slope) {
  return g.integer("reduction") == none ? slope : slope.mul(g.grad()).sum();
}

}  // namespace

Tensor bce_target(const Gradients& g) { return averaged(g, weighted(g, g["self"].logit().neg_().mul(g.grad())), "target"); }

Tensor bce_logits_self(const Gradients& g) {
  const Tensor self = g["self"], target = g["target"], pos_weight = g["pos_weight"];
  Tensor slope;
  if (pos_weight.defined()) {
    const Tensor positive = pos_weight.mul(target);
    const Tensor all = plus(positive, Scalar(1)).sub(target);
    slope = all.mul(self.sigmoid()).sub(positive).mul(g.grad());
  } else {
    slope = self.sigmoid().sub(target).mul(g.grad());
  }
  return averaged(g, weighted(g, slope), "self");
}
Tensor bce_logits_target(const Gradients& g) {
  const Tensor self = g["self"], pos_weight = g["pos_weight"];
  Tensor slope = self.neg();
  if (pos_weight.defined()) {
    const Tensor absent = slope.log_sigmoid();
    slope = absent.sub(self.log_sigmoid().mul(pos_weight));
  }
  return averaged(g, weighted(g, slope.mul(g.grad())), "target");
}

Tensor bce_twice_given(const Gradients& g) {
  const Tensor self = g["self"];
  const Scalar eps(1e-12);
  const Tensor absent = plus(number_minus(Scalar(1), self), eps), present = plus(self, eps);
  const Tensor spread = present.mul(absent);
  const Tensor slope = weighted(g, self.sub(g["target"]).div(spread).mul(g.grad()));
  return mean_of(g, slope);
}
Tensor bce_twice_self(const Gradients& g) {
  const Tensor self = g["self"], target = g["target"];
  const Scalar eps(1e-12);
  const Tensor present = plus(self, eps), absent = plus(number_minus(Scalar(1), self), eps);
  const Tensor absent_square = absent.pow(Scalar(2));
  const Tensor spread = present.pow(Scalar(2)).mul(absent_square);
  const Tensor mixed = times(self, Scalar(2)).mul(target);
  const Tensor curve = self.mul(self).sub(mixed).add(target).div(spread);
  return mean_of(g, weighted(g, curve.mul(g.grad().mul(g["grad_output"]))));
}
Tensor bce_twice_target(const Gradients& g) {
  const Tensor self = g["self"];
  const Tensor slope = weighted(g, g.grad().neg().mul(g["grad_output"]));
  const Tensor spread = number_minus(Scalar(1), self).mul(self).clamp_min_(Scalar(1e-12));
  return mean_of(g, slope.div(spread));
}

Tensor mse_twice(const Gradients& g, std::string_view of) {
  const Tensor slope = times(g.grad().mul(g["grad_output"]), Scalar(2));
  return averaged(g, slope, of);
}

Tensor smooth_l1_twice(const Gradients& g) {
  const Tensor both = g.grad().mul(g["grad_output"]), distance = g["self"].sub(g["target"]).abs();
  const Tensor near = distance.lt(Scalar(g.number("beta"))).type_as(both);
  return averaged(g, gradient::over(both.mul(near), Scalar(g.number("beta"))), "self");
}

Tensor huber_twice(const Gradients& g) {
  const Tensor both = g.grad().mul(g["grad_output"]), distance = g["self"].sub(g["target"]).abs();
  return averaged(g, both.mul(distance.lt(Scalar(g.number("delta")))), "self");
}
Tensor huber_twice_given(const Gradients& g) {
  const int64_t reduction = g.integer("reduction");
  const Tensor given = reduction == none ? g.grad() : ones_like(g["grad_output"]);
  return of_given(g, huber_loss_backward(given, g["self"], g["target"], reduction, g.number("delta")));
}

Tensor soft_margin_twice(const Gradients& g) {
  const Tensor both = g.grad().mul(g["grad_output"]), target = g["target"];
  const Tensor z = g["self"].mul(target.neg()).exp(), rest = plus(z, Scalar(1));
  const Tensor square = rest.mul(rest);
  const Tensor slope = both.mul(target.mul(target)).mul(z).div(square);
  return averaged(g, slope, "self");
}
Tensor soft_margin_twice_given(const Gradients& g) {
  const int64_t reduction = g.integer("reduction");
  const Tensor given = reduction == none ? g.grad() : ones_like(g["grad_output"]);
  return of_given(g, soft_margin_loss_backward(given, g["self"], g["target"], reduction));
}

}  // namespace calque::gradient
