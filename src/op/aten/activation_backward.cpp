// Gradients of activations.
#include "calque/op/aten/activation_backward.h"

#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/slope.h"
#include "kernel/cpu/elementwise/ternary.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Slope;
using rule::OpName;

template <OpName op, class... Number>
Meta slope_rule(const Tensor& grad, const Tensor& self, const Number&...) {
  return rule::binary(op.text, grad, self);
}
void run_slope(Slope fn, const Tensor& grad, const Tensor& self, std::initializer_list<double> parameters,
               const Tensor& out) {
  kernel::slope(fn, result_type(grad, self), {&grad, &self}, parameters, out);
}
template <Slope fn>
void plain_slope(const Tensor& grad, const Tensor& self, const Tensor& out) {
  run_slope(fn, grad, self, {}, out);
}
template <Slope fn>
void slope_by_number(const Tensor& grad, const Tensor& self, const Scalar& number, const Tensor& out) {
  run_slope(fn, grad, self, {number.to_double()}, out);
}

Meta gelu_backward_rule(const Tensor& grad, const Tensor& self, std::string_view) {
  return rule::binary("gelu_backward", grad, self);
}
void gelu_backward_kernel(const Tensor& grad, const Tensor& self, std::string_view approximate, const Tensor& out) {
  if (approximate != "none" && approximate != "tanh")
    throw UserError("gelu_backward: approximate argument must be either none or tanh, found '" + std::string(approximate) +
                    "'");
  run_slope(approximate == "tanh" ? Slope::gelu_tanh : Slope::gelu, grad, self, {}, out);
}

Meta elu_backward_rule(const Tensor& grad, const Scalar& alpha, const Scalar&, const Scalar&, bool is_result,
                       const Tensor& self) {
  if (is_result && alpha.to_double() < 0)
    throw UserError(
        "elu_backward: In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
        "caused by calling in-place forward function with a negative slope, please call out-of-place version instead");
  return rule::binary("elu_backward", grad, self);
}
void elu_backward_kernel(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                         bool is_result, const Tensor& self, const Tensor& out) {
  const double negative =
      result_type(grad, self) == DType::float64
          ? alpha.to_double() * scale.to_double()
          : static_cast<double>(static_cast<float>(alpha.to_double()) * static_cast<float>(scale.to_double()));
  run_slope(is_result ? Slope::elu_result : Slope::elu, grad, self, {negative, scale.to_double(), input_scale.to_double()},
            out);
}

Meta leaky_backward_rule(const Tensor& grad, const Tensor& self, const Scalar& slope, bool self_is_result) {
  if (self_is_result && slope.to_double() < 0)
    throw UserError(
        "leaky_relu_backward: In-place leakyReLu backward calculation is triggered with a negative slope which is not "
        "supported. This is caused by calling in-place forward function with a negative slope, please call out-of-place "
        "version instead.");
  return rule::binary("leaky_relu_backward", self, grad);
}

Meta logit_backward_rule(const Tensor& grad, const Tensor& self, std::optional<double>) {
  return rule::binary("logit_backward", grad, self);
}
void logit_backward_kernel(const Tensor& grad, const Tensor& self, std::optional<double> eps, const Tensor& out) {
  if (!eps || *eps < 0) return run_slope(Slope::logit, grad, self, {}, out);
  const bool narrow = result_type(grad, self) != DType::float64;
  const double low = narrow ? static_cast<double>(static_cast<float>(*eps)) : *eps;
  run_slope(Slope::logit_within, grad, self, {low, narrow ? static_cast<double>(1.0F - static_cast<float>(low)) : 1 - low},
            out);
}

Meta log_sigmoid_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& buffer) {
  Meta m = grad.meta();
  rule::pointwise("log_sigmoid_backward", grad.dtype(), {&grad, &self, &buffer});
  m.strides = rule::preserved_strides(grad);
  return m;
}
void log_sigmoid_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& buffer, const Tensor& out) {
  kernel::slope(Slope::log_sigmoid, grad.dtype(), {&grad, &self, &buffer}, {}, out);
}

std::array<Meta, 2> prelu_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& weight) {
  const Meta m = rule::pointwise("_prelu_kernel_backward", self.dtype(), {&self, &weight, &grad});
  return {m, m};
}
void prelu_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& weight, const Tensor& grad_self,
                           const Tensor& grad_weight) {
  kernel::slope(Slope::prelu, self.dtype(), {&grad, &self, &weight}, {}, grad_self);
  kernel::slope(Slope::prelu_weight, self.dtype(), {&grad, &self}, {}, grad_weight);
}

// ---- the gated linear unit ------------------------------------------------------------------------------------------
struct Gated {
  size_t dim;
  SymInt half;
};
Gated gated_of(const Tensor& grad, const Tensor& self, int64_t dim) {
  if (self.dim() == 0) throw UserError("glu_backward: does not support 0-dimensional tensors");
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), "glu_backward"));
  const SymIntList sizes = self.sym_sizes();
  if (!check(sizes[d] % 2 == 0))
    throw UserError("glu_backward: Halving dimension must be even, but dimension " + std::to_string(d) + " is size " +
                    sizes[d].str());
  SymInts half(sizes.begin(), sizes.end());
  half[d] = floor_div(sizes[d], 2);
  if (!rule::equal_sizes(half, grad.sym_sizes()))
    throw UserError("glu_backward: expected grad_output of sizes " + str(SymIntList(half)) + ", found " +
                    str(grad.sym_sizes()));
  return {d, half[d]};
}
Meta glu_backward_rule(const Tensor& grad, const Tensor& self, int64_t dim) {
  gated_of(grad, self, dim);
  Meta m = self.meta();
  m.strides = contiguous_strides(m.sizes);
  return m;
}
Tensor half_of(const Tensor& t, const Gated& gated, bool second) {
  const SymIntList sizes = t.sym_sizes(), strides = t.sym_strides();
  SymInts half(sizes.begin(), sizes.end());
  half[gated.dim] = gated.half;
  return make_view(t, half, SymInts(strides.begin(), strides.end()),
                   t.sym_storage_offset() + (second ? gated.half * strides[gated.dim] : SymInt(0)));
}
void glu_backward_kernel(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& out) {
  const Gated gated = gated_of(grad, self, dim);
  const Tensor value = half_of(self, gated, false), gate = half_of(self, gated, true);
  kernel::glu(grad, gate, half_of(out, gated, false));
  kernel::slope(Slope::glu, self.dtype(), {&grad, &value, &gate}, {}, half_of(out, gated, true));
}

// ---- leaky units of a random slope, and dropout ---------------------------------------------------------------------
bool is_random(const Scalar& lower, const Scalar& upper, bool training) {
  return training && upper.to_double() - lower.to_double() > 1e-6;
}
Meta rrelu_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                         const Scalar& upper, bool training, bool self_is_result) {
  if (is_random(lower, upper, training)) return rule::binary("rrelu_with_noise_backward", noise, grad);
  return leaky_backward_rule(grad, self, Scalar((lower.to_double() + upper.to_double()) / 2), self_is_result);
}
void rrelu_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                           const Scalar& upper, bool training, bool, const Tensor& out) {
  if (is_random(lower, upper, training))
    return kernel::binary_wide(kernel::Binary::mul, result_type(noise, grad), noise, grad, out);
  run_slope(Slope::leaky_relu, grad, self, {(lower.to_double() + upper.to_double()) / 2}, out);
}

// ---- gradients of gradients -----------------------------------------------------------------------------------------
Tensor gelu_twice(const Gradients& g) {
  const Tensor x = g["self"], given = g["grad_output"];
  constexpr double beta = 0.79788456080286535588, kappa = 0.044715;
  const auto times = [](const Tensor& t, double n) { return gradient::times(t, Scalar(n)); };
  if (g.argument("approximate").to_string() == "none") {
    const Tensor square = x.mul(x), bell = times(times(square, -0.5).exp(), 0.39894228040143267794);
    const Tensor lost = square.mul(bell);
    const Tensor slope = gradient::times(bell, Scalar(2)).sub(lost);
    return g.grad().mul(given).mul(slope);
  }
  const Tensor inner = times(x.add(times(x.pow(Scalar(3)), kappa)), beta);
  const Tensor tanh = inner.tanh(), sech = gradient::number_over(Scalar(1), inner.cosh());
  const Tensor half = times(x, 0.5), rest = gradient::number_minus(Scalar(1), tanh.mul(tanh));
  const Tensor steep = times(gradient::plus(times(x, 3 * kappa).mul(x), Scalar(1)), beta);
  const Tensor first = times(rest, 0.5).mul(steep);
  const Tensor falling = sech.neg().mul(tanh);
  const Tensor second = gradient::times(sech, Scalar(2)).mul(falling).mul(steep).mul(half).mul(steep);
  const Tensor third = times(times(x, 6 * kappa), beta).mul(half).mul(rest);
  const Tensor slope = gradient::times(first, Scalar(2)).add(second).add(third);
  return g.grad().mul(given).mul(slope);
}

Tensor elu_twice(const Gradients& g) {
  const Tensor x = g["self_or_result"];
  const Tensor negative = x.lt(Scalar(0)).type_as(g.grad());
  const Tensor both = gradient::times(g.grad().mul(g["grad_output"]), g.scalar("input_scale"));
  if (g.flag("is_result")) return both.mul(negative);
  return elu_backward(both, g.scalar("alpha"), g.scalar("scale"), g.scalar("input_scale"), false, x).mul(negative);
}

Tensor softplus_twice(const Gradients& g) {
  const Tensor both = g.grad().mul(g["grad_output"]), x = gradient::times(g["self"], g.scalar("beta"));
  const Tensor curved = x.lt(g.scalar("threshold")).type_as(both);
  return gradient::times(sigmoid_backward(both, x.sigmoid()).mul(curved), g.scalar("beta"));
}

Tensor log_sigmoid_twice(const Gradients& g) {
  const Tensor both = g.grad().mul(g["grad_output"]), sigmoid = g["self"].sigmoid();
  return both.mul(gradient::minus(sigmoid, Scalar(1))).mul(sigmoid);
}

Tensor hardswish_twice(const Gradients& g) {
  const Tensor self = g["self"], zero = zeros(SymIntList(), self.dtype(), Layout::strided, self.device());
  const Tensor slope = gradient::over(g.grad().mul(g["grad_output"]), Scalar(3.0));
  const Tensor below = self.lt(Scalar(3.0));
  return where(self.gt(Scalar(-3.0)).logical_and(below), slope, zero);
}

Tensor glu_twice_given(const Gradients& g) {
  const Tensor self = g["self"];
  const int64_t dim = g.integer("dim") < 0 ? g.integer("dim") + self.dim() : g.integer("dim");
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  SymInt& half = sizes[static_cast<size_t>(dim)];
  half = floor_div(half, 2);
  const Tensor slope = g.grad().mul(glu_backward(ones(sizes, self.dtype(), Layout::strided, self.device()), self, dim));
  const Tensor gate = slope.narrow(dim, half, half);
  return slope.narrow(dim, 0, half).add(gate);
}
Tensor glu_twice(const Gradients& g) {
  const Tensor self = g["self"], given = g["grad_output"];
  const int64_t dim = g.integer("dim") < 0 ? g.integer("dim") + self.dim() : g.integer("dim");
  const SymInt half = floor_div(self.sym_size(dim), 2);
  const Tensor value = self.narrow(dim, 0, half), sigmoid = self.narrow(dim, half, half).sigmoid();
  const Tensor rest = gradient::number_minus(Scalar(1), sigmoid), slope = sigmoid.mul(rest);
  const Tensor of_value = g.grad().narrow(dim, 0, half), of_gate = g.grad().narrow(dim, half, half);
  const Tensor through_gate = of_gate.mul(value);
  const Tensor first = of_gate.mul(given).mul(slope);
  const Tensor curve = slope.mul(rest).sub(sigmoid.mul(slope));
  const Tensor straight = of_value.mul(given).mul(slope);
  return cat({first, through_gate.mul(given).mul(curve).add(straight)}, dim);
}

TensorVector prelu_twice(const Gradients& g) {
  const Tensor self = g["self"], weight = g["weight"], given = g["grad_output"];
  const Tensor &of_self = g.grad(0), &of_weight = g.grad(1);
  const auto at_negative = [&](const Tensor& t) {
    const Tensor zero = zeros(SymIntList(), self.dtype(), Layout::strided, self.device());
    return where(self.ge(Scalar(0)), zero, t);
  };
  TensorVector out(3);
  if (g.needs("grad_output")) {
    if (of_self.defined()) {
      const Tensor first = of_self.mul(weight);
      const Tensor negative = of_weight.defined() ? first.add(of_weight.mul(self)) : first;
      out[0] = where(self.ge(Scalar(0)), of_self, negative);
    } else {
      out[0] = at_negative(of_weight.mul(self));
    }
  }
  if (g.needs("self")) out[1] = of_weight.defined() ? at_negative(given.mul(of_weight)) : gradient::zeros_of(g, "self");
  if (g.needs("weight")) out[2] = of_self.defined() ? at_negative(given.mul(of_self)) : gradient::zeros_of(g, "self");
  return out;
}

}  // namespace

void register_activation_backward(Library& aten);
void register_activation_backward(Library& aten) {
  aten.def("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor")
      .compute(slope_rule<"sigmoid_backward">, plain_slope<Slope::sigmoid>)
      .out("sigmoid_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("grad_output", "output", [](const Gradients& g) { return sigmoid_backward(g.grad(), g["output"]); })
      .gradient("output", "grad_output output", [](const Gradients& g) {
        const Tensor slope = gradient::plus(gradient::times(g["output"], Scalar(-2)), Scalar(1));
        return g.grad().mul(g["grad_output"]).mul(slope);
      });
  aten.def("tanh_backward(Tensor grad_output, Tensor output) -> Tensor")
      .compute(slope_rule<"tanh_backward">, plain_slope<Slope::tanh>)
      .out("tanh_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("grad_output", "output", [](const Gradients& g) { return tanh_backward(g.grad(), g["output"]); })
      .gradient("output", "grad_output output", [](const Gradients& g) {
        return g.grad().mul(gradient::times(g["output"], Scalar(-2)).mul(g["grad_output"]));
      });
  aten.def("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
      .compute([](const Tensor& grad, const Tensor& self,
                  const Scalar&) { return rule::binary("threshold_backward", self, grad); },
               slope_by_number<Slope::threshold>)
      .out("threshold_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("grad_output", "self",
                [](const Gradients& g) { return threshold_backward(g.grad(), g["self"], g.scalar("threshold")); })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor")
      .python("torch._C._nn.gelu_backward")
      .compute(gelu_backward_rule, gelu_backward_kernel)
      .out("gelu_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("grad_output", "self",
                [](const Gradients& g) { return gelu_backward(g.grad(), g["self"], g.argument("approximate").to_string()); })
      .gradient("self", "grad_output self", gelu_twice);
  aten.def("silu_backward(Tensor grad_output, Tensor self) -> Tensor")
      .python("torch._C._nn.silu_backward")
      .compute(slope_rule<"silu_backward">, plain_slope<Slope::silu>)
      .out("silu_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise);
  aten.def("mish_backward(Tensor grad_output, Tensor self) -> Tensor")
      .python("torch._C._nn.mish_backward")
      .compute(slope_rule<"mish_backward">, plain_slope<Slope::mish>);
  aten.def("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor")
      .python("torch._C._nn.hardtanh_backward")
      .compute(slope_rule<"hardtanh_backward", Scalar, Scalar>,
               [](const Tensor& grad, const Tensor& self, const Scalar& min, const Scalar& max, const Tensor& out) {
                 run_slope(Slope::hardtanh, grad, self, {min.to_double(), max.to_double()}, out);
               })
      .out("hardtanh_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_output", "self",
                [](const Gradients& g) {
                  return hardtanh_backward(g.grad(), g["self"], g.scalar("min_val"), g.scalar("max_val"));
                })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor")
      .compute(slope_rule<"hardswish_backward">, plain_slope<Slope::hardswish>)
      .out("hardswish_backward.out")
      .tags(Tag::dense_out)
      .gradient("grad_output", "self", [](const Gradients& g) { return hardswish_backward(g.grad(), g["self"]); })
      .gradient("self", "grad_output self", hardswish_twice);
  aten.def("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor")
      .compute(slope_rule<"hardsigmoid_backward">, plain_slope<Slope::hardsigmoid>)
      .out("hardsigmoid_backward.grad_input(grad_input)")
      .tags(Tag::cast_out);
  aten.def("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor")
      .python("torch._C._nn.leaky_relu_backward")
      .compute(leaky_backward_rule,
               [](const Tensor& grad, const Tensor& self, const Scalar& slope, bool, const Tensor& out) {
                 run_slope(Slope::leaky_relu, grad, self, {slope.to_double()}, out);
               })
      .out("leaky_relu_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient(
          "grad_output", "self",
          [](const Gradients& g) { return leaky_relu_backward(g.grad(), g["self"], g.scalar("negative_slope"), false); })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def(
          "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
          "self_or_result) -> Tensor")
      .python("torch._C._nn.elu_backward")
      .compute(elu_backward_rule, elu_backward_kernel)
      .out("elu_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_output", "self_or_result",
                [](const Gradients& g) {
                  return elu_backward(g.grad(), g.scalar("alpha"), g.scalar("scale"), g.scalar("input_scale"),
                                      g.flag("is_result"), g["self_or_result"]);
                })
      .gradient("self_or_result", "grad_output self_or_result", elu_twice);
  aten.def("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor")
      .python("torch._C._nn.softplus_backward")
      .compute(slope_rule<"softplus_backward", Scalar, Scalar>,
               [](const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold, const Tensor& out) {
                 run_slope(Slope::softplus, grad, self, {beta.to_double(), threshold.to_double()}, out);
               })
      .out("softplus_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient(
          "grad_output", "self",
          [](const Gradients& g) { return softplus_backward(g.grad(), g["self"], g.scalar("beta"), g.scalar("threshold")); })
      .gradient("self", "grad_output self", softplus_twice);
  aten.def("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor")
      .python("torch._C._nn.softshrink_backward")
      .compute(slope_rule<"softshrink_backward", Scalar>, slope_by_number<Slope::softshrink>)
      .out("softshrink_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_output", "self",
                [](const Gradients& g) { return softshrink_backward(g.grad(), g["self"], g.scalar("lambd")); })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor")
      .compute(slope_rule<"hardshrink_backward", Scalar>, slope_by_number<Slope::hardshrink>)
      .out("hardshrink_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_out", "self",
                [](const Gradients& g) { return hardshrink_backward(g.grad(), g["self"], g.scalar("lambd")); })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor")
      .compute(logit_backward_rule, logit_backward_kernel)
      .out("logit_backward.grad_input(grad_input)")
      .tags(Tag::cast_out, Tag::pointwise);
  aten.def("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor")
      .python("torch._C._nn.log_sigmoid_backward")
      .compute(log_sigmoid_backward_rule, log_sigmoid_backward_kernel)
      .out("log_sigmoid_backward.grad_input(grad_input)")
      .gradient("grad_output", "self buffer",
                [](const Gradients& g) { return log_sigmoid_backward(g.grad(), g["self"], g["buffer"]); })
      .gradient("self", "grad_output self", log_sigmoid_twice);
  aten.def("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
      .python("torch._C._nn.glu_backward")
      .compute(glu_backward_rule, glu_backward_kernel)
      .out("glu_backward.grad_input(grad_input)")
      .gradient("grad_output", "self", glu_twice_given)
      .gradient("self", "grad_output self", glu_twice);
  aten.def("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)")
      .compute(prelu_backward_rule, prelu_backward_kernel)
      .gradient("grad_output self weight", "grad_output self weight", prelu_twice);
  aten.def(
          "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
          "training, bool self_is_result) -> Tensor")
      .compute(rrelu_backward_rule, rrelu_backward_kernel)
      .out("rrelu_with_noise_backward.out")
      .tags(Tag::dense_out)
      .gradient("grad_output", "self noise",
                [](const Gradients& g) {
                  return rrelu_with_noise_backward(g.grad(), g["self"], g["noise"], g.scalar("lower"), g.scalar("upper"),
                                                   g.flag("training"), false);
                })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
      .compute(
          [](const Tensor& grad, const Tensor& mask, double) {
            Meta m = rule::binary("native_dropout_backward", grad, mask);
            if (is_integral(m.dtype)) m.dtype = default_dtype();
            return m;
          },
          [](const Tensor& grad, const Tensor& mask, double scale, const Tensor& out) {
            // A product of integers has no negative zero.
            if (is_integral(grad.dtype()))
              return kernel::binary_wide(kernel::Binary::mul, out.dtype(), grad.mul(mask), Scalar(scale), out);
            kernel::scale_masked(grad, mask, scale, out);
          })
      .out("native_dropout_backward.out")
      .tags(Tag::dense_out, Tag::pointwise)
      .gradient("grad_output", "mask", [](const Gradients& g) {
        return g.grad().mul(gradient::times(g["mask"].type_as(g.grad()), Scalar(g.number("scale"))));
      });
}

}  // namespace calque
