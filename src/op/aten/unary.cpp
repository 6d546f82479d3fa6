// Mathematics on one operand: signs, rounding, powers and logarithms, trigonometry, tests for NaN and infinity.
#include <cmath>
#include <limits>

#include "calque/op/aten/activation_backward.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/unary.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Activation;
using kernel::Unary;

template <Unary fn>
void in_own_type(const Tensor& self, const Tensor& out) {
  kernel::unary(fn, self.dtype(), self, out);
}
// Integers are computed as the default floating dtype.
template <Unary fn>
void in_float(const Tensor& self, const Tensor& out) {
  kernel::unary(fn, float_type(self.dtype()), self, out);
}
// Integers are whole already.
template <Unary fn>
void whole_numbers(const Tensor& self, const Tensor& out) {
  if (is_integral(self.dtype(), false))
    kernel::copy(self, out);
  else
    kernel::unary(fn, self.dtype(), self, out);
}

// Where ATen makes the result by empty_like before it computes.
template <rule::OpName op>
Meta like_float(const Tensor& self) {
  return rule::like(op.text, self, float_type(self.dtype()), {}, {}, {}, {});
}

// No integer is infinite: ATen answers with zeros_like, and with a comparison of other dtypes.
Meta isinf_rule(const Tensor& self) {
  return is_integral(self.dtype()) ? rule::like("isinf", self, DType::bool_, {}, {}, {}, {})
                                   : rule::pointwise_with_number("isinf", DType::bool_, self);
}
Meta neg_rule(const Tensor& self) {
  if (self.dtype() == DType::bool_)
    throw UserError("neg: negation, the `-` operator, on a bool tensor is not supported; use `~` or logical_not() instead");
  return rule::unary("neg", self);
}

Tensor positive_body(const Tensor& self) {
  if (self.dtype() == DType::bool_) throw UserError("positive: the `+` operator, on a bool tensor is not supported");
  return self;
}

void bitwise_not_kernel(const Tensor& self, const Tensor& out) {
  kernel::unary(self.dtype() == DType::bool_ ? Unary::logical_not : Unary::bitwise_not, self.dtype(), self, out);
}

Tensor isfinite_body(const Tensor& self) {
  if (is_integral(self.dtype()))
    return ones_like(self, DType::bool_, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::preserve);
  return mul(eq(self, self), ne(abs(self), Scalar(std::numeric_limits<double>::infinity())));
}

Tensor isreal_body(const Tensor& self) {
  if (is_complex(self.dtype())) kernel::not_implemented("isreal", self.dtype());
  return ones_like(self, DType::bool_, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::preserve);
}

// What conjugation and the real part are for numbers that are real.
Tensor itself(const char* op, const Tensor& self) {
  if (is_complex(self.dtype())) kernel::not_implemented(op, self.dtype());
  return self;
}

void round_decimals(const Tensor& self, int64_t decimals, const Tensor& out) {
  if (decimals == 0) {
    if (is_integral(self.dtype())) kernel::not_implemented("round", self.dtype());
    return kernel::unary(Unary::round, self.dtype(), self, out);
  }
  const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  kernel::activation(decimals < 0 ? Activation::round_down : Activation::round_up, self.dtype(), self, {Scalar(power)},
                     false, out);
}

double rounded(DType d, double x) {
  return d == DType::float64    ? x
         : d == DType::float16  ? static_cast<float>(Half(static_cast<float>(x)))
         : d == DType::bfloat16 ? static_cast<float>(BFloat16(static_cast<float>(x)))
                                : static_cast<float>(x);
}

// log(x / (1 - x)), x within [eps, 1 - eps]. PyTorch rounds each step to the dtype, which shows in 16-bit floats.
void logit_kernel(const Tensor& self, std::optional<double> eps, const Tensor& out) {
  const DType common = float_type(self.dtype());
  Tensor x = self;
  const auto temporary = [&] { return make_tensor(rule::pointwise("logit", common, {&self})); };
  if (eps && *eps >= 0) {
    const double low = rounded(common, *eps);
    const Tensor clamped = temporary();
    kernel::activation(Activation::clamp, common, self, {Scalar(low), Scalar(rounded(common, 1 - low))}, true, clamped);
    x = clamped;
  }
  if (!is_reduced_float(common)) return kernel::activation(Activation::logit, common, x, {}, false, out);
  const Tensor odds = temporary();
  kernel::binary(kernel::Binary::sub, common, Scalar(1), x, odds);
  kernel::binary(kernel::Binary::div, common, x, odds, odds);
  kernel::unary(Unary::log, common, odds, out);
}

void nan_to_num_kernel(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                       std::optional<double> neginf, const Tensor& out) {
  const DType d = self.dtype();
  if (is_integral(d)) return kernel::copy(self, out);
  const double largest = largest_finite(d);
  kernel::activation(Activation::nan_to_num, d, self,
                     {Scalar(nan.value_or(0)), Scalar(posinf.value_or(largest)), Scalar(neginf.value_or(-largest))}, false,
                     out);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
constexpr double two_over_root_pi = 1.1283791670955125739;

Tensor one_minus_square(const Tensor& x) { return gradient::plus(x.neg().mul(x), Scalar(1)); }
Tensor bell(const Tensor& x) { return x.pow(Scalar(2)).neg().exp(); }

Tensor sinc_gradient(const Gradients& g) {
  const Tensor self = g["self"], turned = gradient::times(self, Scalar(3.14159265358979323846));
  const Tensor square = gradient::times(self.mul(self), Scalar(3.14159265358979323846));
  const Tensor sine = turned.sin();
  const Tensor slope = g.grad().mul(turned.mul(turned.cos()).sub(sine).div(square));
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(square.eq(Scalar(0.0)), zero, slope);
}

Tensor logit_gradient(const Gradients& g) {
  const Tensor self = g["self"];
  const Value& eps = g.argument("eps");
  const std::optional<double> bound = eps.is_none() ? std::nullopt : std::optional(eps.to_float());
  if (!grad_enabled()) return logit_backward(g.grad(), self, bound);
  // What is differentiable again.
  const Scalar low(bound.value_or(0.0)), high(bound ? 1.0 - *bound : 1.0);
  const Tensor outside = bound ? zeros(SymIntList(), self.dtype(), Layout::strided, self.device())
                               : empty(SymIntList(), self.dtype(), Layout::strided, self.device())
                                     .fill_(Scalar(std::numeric_limits<double>::quiet_NaN()));
  const Tensor slope = g.grad().div(self.mul(gradient::number_minus(Scalar(1.0), self)));
  const Tensor below = self.le(high);
  return where(self.ge(low).logical_and(below), slope, outside);
}

}  // namespace

void register_unary(Library& aten);
void register_unary(Library& aten) {
  aten.def("abs(Tensor self) -> Tensor")
      .python_alias("operator.abs")
      .compute(
          [](const Tensor& self) {
            if (self.dtype() == DType::bool_)
              throw UserError(ErrorKind::unsupported_operator, "\"abs\" not implemented for 'bool'");
            Meta m = rule::unary("abs", self);
            m.dtype = to_real(m.dtype);
            return m;
          },
          in_own_type<Unary::abs>)
      .in_place("abs_")
      .out("abs.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].sgn()); });
  aten.def("neg(Tensor self) -> Tensor")
      .python_alias("operator.neg")
      .compute(neg_rule, in_own_type<Unary::neg>)
      .in_place("neg_")
      .out("neg.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad().neg(); });
  aten.def("positive(Tensor(a) self) -> Tensor(a)").composite(positive_body);
  aten.def("bitwise_not(Tensor self) -> Tensor")
      .python_alias("operator.invert")
      .compute(rule::Named<"bitwise_not">::unary, bitwise_not_kernel)
      .in_place("bitwise_not_")
      .out("bitwise_not.out")
      .tags(Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("logical_not(Tensor self) -> Tensor")
      .compute(rule::Named<"logical_not">::unary_bool, in_own_type<Unary::logical_not>)
      .in_place("logical_not_")
      .out("logical_not.out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("sign(Tensor self) -> Tensor")
      .compute(rule::Named<"sign">::unary, in_own_type<Unary::sign>)
      .in_place("sign_")
      .out("sign.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("sgn(Tensor self) -> Tensor")
      .compute(rule::Named<"sgn">::unary, in_own_type<Unary::sign>)
      .in_place("sgn_")
      .out("sgn.out")
      .tags(Tag::pointwise)
      .gradient("self", "result", [](const Gradients& g) { return g.grad().new_zeros(g.sizes("self")); });
  aten.def("signbit(Tensor self) -> Tensor")
      .compute(rule::Named<"signbit">::unary_bool, in_own_type<Unary::signbit>)
      .out("signbit.out")
      .tags(Tag::pointwise)
      .no_gradient();
  aten.def("isnan(Tensor self) -> Tensor")
      .compute(rule::Named<"isnan">::unary_bool, in_own_type<Unary::isnan>)
      .out("isnan.out")
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("isinf(Tensor self) -> Tensor")
      .compute(isinf_rule, in_own_type<Unary::isinf>)
      .out("isinf.out")
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("isposinf(Tensor self) -> Tensor")
      .compute(rule::Named<"isposinf">::unary_bool, in_own_type<Unary::isposinf>)
      .out("isposinf.out")
      .tags(Tag::pointwise)
      .no_gradient();
  aten.def("isneginf(Tensor self) -> Tensor")
      .compute(rule::Named<"isneginf">::unary_bool, in_own_type<Unary::isneginf>)
      .out("isneginf.out")
      .tags(Tag::pointwise)
      .no_gradient();
  aten.def("isfinite(Tensor self) -> Tensor").composite(isfinite_body);
  aten.def("isreal(Tensor self) -> Tensor").composite(isreal_body);
  aten.def("ceil(Tensor self) -> Tensor")
      .compute(rule::Named<"ceil">::unary, whole_numbers<Unary::ceil>)
      .in_place("ceil_")
      .out("ceil.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("floor(Tensor self) -> Tensor")
      .compute(rule::Named<"floor">::unary, whole_numbers<Unary::floor>)
      .in_place("floor_")
      .out("floor.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("trunc(Tensor self) -> Tensor")
      .compute(rule::Named<"trunc">::unary, whole_numbers<Unary::trunc>)
      .in_place("trunc_")
      .out("trunc.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("round(Tensor self) -> Tensor")
      .compute(rule::Named<"round">::unary, whole_numbers<Unary::round>)
      .in_place("round_")
      .out("round.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("round.decimals(Tensor self, *, int decimals) -> Tensor")
      .compute([](const Tensor& self, int64_t) { return rule::unary("round", self); }, round_decimals)
      .in_place("round_.decimals")
      .out("round.decimals_out")
      .tags(Tag::pointwise)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("frac(Tensor self) -> Tensor")
      .compute(rule::Named<"frac">::unary, in_own_type<Unary::frac>)
      .in_place("frac_")
      .out("frac.out")
      .tags(Tag::pointwise)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("angle(Tensor self) -> Tensor")
      .compute(rule::Named<"angle">::unary_float, in_float<Unary::angle>)
      .out("angle.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self",
                [](const Gradients& g) { return zeros_like(g["self"], {}, {}, {}, {}, MemoryFormat::preserve); });
  aten.def("acos(Tensor self) -> Tensor")
      .compute(rule::Named<"acos">::unary_float, in_float<Unary::acos>)
      .in_place("acos_")
      .out("acos.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(one_minus_square(g["self"]).rsqrt().neg()); });
  aten.def("acosh(Tensor self) -> Tensor")
      .compute(rule::Named<"acosh">::unary_float, in_float<Unary::acosh>)
      .in_place("acosh_")
      .out("acosh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        const Tensor self = g["self"];
        return g.grad().mul(gradient::minus(self.mul(self), Scalar(1)).rsqrt());
      });
  aten.def("asin(Tensor self) -> Tensor")
      .compute(rule::Named<"asin">::unary_float, in_float<Unary::asin>)
      .in_place("asin_")
      .out("asin.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(one_minus_square(g["self"]).rsqrt()); });
  aten.def("asinh(Tensor self) -> Tensor")
      .compute(rule::Named<"asinh">::unary_float, in_float<Unary::asinh>)
      .in_place("asinh_")
      .out("asinh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        return g.grad().mul(gradient::plus(g["self"].pow(Scalar(2)), Scalar(1)).rsqrt());
      });
  aten.def("atan(Tensor self) -> Tensor")
      .compute(rule::Named<"atan">::unary_float, in_float<Unary::atan>)
      .in_place("atan_")
      .out("atan.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        const Tensor self = g["self"];
        return g.grad().div(gradient::plus(self.mul(self), Scalar(1)));
      });
  aten.def("atanh(Tensor self) -> Tensor")
      .compute(rule::Named<"atanh">::unary_float, in_float<Unary::atanh>)
      .in_place("atanh_")
      .out("atanh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        const Tensor rest = gradient::number_minus(Scalar(1), g["self"].pow(Scalar(2)));
        return gradient::times(g.grad(), Scalar(1)).div(rest);
      });
  aten.def("cos(Tensor self) -> Tensor")
      .compute(rule::Named<"cos">::unary_float, in_float<Unary::cos>)
      .in_place("cos_")
      .out("cos.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].sin().neg()); });
  aten.def("cosh(Tensor self) -> Tensor")
      .compute(rule::Named<"cosh">::unary_float, in_float<Unary::cosh>)
      .in_place("cosh_")
      .out("cosh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].sinh()); });
  aten.def("deg2rad(Tensor self) -> Tensor")
      .compute(like_float<"deg2rad">, in_float<Unary::deg2rad>)
      .in_place("deg2rad_")
      .out("deg2rad.out")
      .tags(Tag::made_like_self, Tag::cast_out, Tag::pointwise)
      .gradient("self", "",
                [](const Gradients& g) { return gradient::times(g.grad(), Scalar(0.017453292519943295769236907684886)); });
  aten.def("erf(Tensor self) -> Tensor")
      .compute(rule::Named<"erf">::unary_float, in_float<Unary::erf>)
      .in_place("erf_")
      .out("erf.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return gradient::times(bell(g["self"]), Scalar(two_over_root_pi)).mul(g.grad()); });
  aten.def("erfc(Tensor self) -> Tensor")
      .compute(rule::Named<"erfc">::unary_float, in_float<Unary::erfc>)
      .in_place("erfc_")
      .out("erfc.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) {
        return gradient::times(bell(g["self"]), Scalar(-two_over_root_pi)).mul(g.grad());
      });
  aten.def("exp(Tensor self) -> Tensor")
      .compute(rule::Named<"exp">::unary_float, in_float<Unary::exp>)
      .in_place("exp_")
      .out("exp.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return g.grad().mul(g["result"]); });
  aten.def("exp2(Tensor self) -> Tensor")
      .compute(rule::Named<"exp2">::unary_float, in_float<Unary::exp2>)
      .in_place("exp2_")
      .out("exp2.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "result", [](const Gradients& g) {
        return gradient::times(g.grad().mul(g["result"]), Scalar(0.69314718055994530942));
      });
  aten.def("expm1(Tensor self) -> Tensor")
      .compute(rule::Named<"expm1">::unary_float, in_float<Unary::expm1>)
      .in_place("expm1_")
      .out("expm1.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return g.grad().mul(gradient::plus(g["result"], Scalar(1))); });
  aten.def("lgamma(Tensor self) -> Tensor")
      .compute(rule::Named<"lgamma">::unary_float, in_float<Unary::lgamma>)
      .in_place("lgamma_")
      .out("lgamma.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].digamma()); });
  aten.def("log(Tensor self) -> Tensor")
      .compute(rule::Named<"log">::unary_float, in_float<Unary::log>)
      .in_place("log_")
      .out("log.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().div(g["self"]); });
  aten.def("log10(Tensor self) -> Tensor")
      .compute(rule::Named<"log10">::unary_float, in_float<Unary::log10>)
      .in_place("log10_")
      .out("log10.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return g.grad().div(gradient::times(g["self"], Scalar(2.3025850929940456))); });
  aten.def("log1p(Tensor self) -> Tensor")
      .compute(rule::Named<"log1p">::unary_float, in_float<Unary::log1p>)
      .in_place("log1p_")
      .out("log1p.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().div(gradient::plus(g["self"], Scalar(1))); });
  aten.def("log2(Tensor self) -> Tensor")
      .compute(rule::Named<"log2">::unary_float, in_float<Unary::log2>)
      .in_place("log2_")
      .out("log2.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return g.grad().div(gradient::times(g["self"], Scalar(0.6931471805599453))); });
  aten.def("rad2deg(Tensor self) -> Tensor")
      .compute(like_float<"rad2deg">, in_float<Unary::rad2deg>)
      .in_place("rad2deg_")
      .out("rad2deg.out")
      .tags(Tag::made_like_self, Tag::cast_out, Tag::pointwise)
      .gradient("self", "",
                [](const Gradients& g) { return gradient::times(g.grad(), Scalar(57.295779513082320876798154814105)); });
  aten.def("reciprocal(Tensor self) -> Tensor")
      .compute(rule::Named<"reciprocal">::unary_float, in_float<Unary::reciprocal>)
      .in_place("reciprocal_")
      .out("reciprocal.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) {
        const Tensor result = g["result"], square = result.mul(result);
        return g.grad().neg().mul(square);
      });
  aten.def("rsqrt(Tensor self) -> Tensor")
      .compute(rule::Named<"rsqrt">::unary_float, in_float<Unary::rsqrt>)
      .in_place("rsqrt_")
      .out("rsqrt.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) {
        const Tensor cube = g["result"].pow(Scalar(3));
        return gradient::times(g.grad(), Scalar(-0.5)).mul(cube);
      });
  aten.def("sigmoid(Tensor self) -> Tensor")
      .compute(rule::Named<"sigmoid">::unary_float, in_float<Unary::sigmoid>)
      .in_place("sigmoid_")
      .out("sigmoid.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return sigmoid_backward(g.grad(), g["result"]); });
  aten.def("sin(Tensor self) -> Tensor")
      .compute(rule::Named<"sin">::unary_float, in_float<Unary::sin>)
      .in_place("sin_")
      .out("sin.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].cos()); });
  aten.def("sinc(Tensor self) -> Tensor")
      .compute(rule::Named<"sinc">::unary_float, in_float<Unary::sinc>)
      .in_place("sinc_")
      .out("sinc.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", sinc_gradient);
  aten.def("sinh(Tensor self) -> Tensor")
      .compute(rule::Named<"sinh">::unary_float, in_float<Unary::sinh>)
      .in_place("sinh_")
      .out("sinh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].cosh()); });
  aten.def("sqrt(Tensor self) -> Tensor")
      .compute(rule::Named<"sqrt">::unary_float, in_float<Unary::sqrt>)
      .in_place("sqrt_")
      .out("sqrt.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return g.grad().div(gradient::times(g["result"], Scalar(2))); });
  aten.def("tan(Tensor self) -> Tensor")
      .compute(rule::Named<"tan">::unary_float, in_float<Unary::tan>)
      .in_place("tan_")
      .out("tan.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result",
                [](const Gradients& g) { return g.grad().mul(gradient::plus(g["result"].pow(Scalar(2)), Scalar(1))); });
  aten.def("tanh(Tensor self) -> Tensor")
      .compute(rule::Named<"tanh">::unary_float, in_float<Unary::tanh>)
      .in_place("tanh_")
      .out("tanh.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return tanh_backward(g.grad(), g["result"]); });
  aten.def("special_entr(Tensor self) -> Tensor")
      .compute(rule::Named<"special_entr">::unary_float, in_float<Unary::special_entr>)
      .out("special_entr.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self",
                [](const Gradients& g) { return g.grad().mul(gradient::plus(g["self"].log(), Scalar(1)).neg()); });
  aten.def("logit(Tensor self, float? eps=None) -> Tensor")
      .compute([](const Tensor& self, std::optional<double>) { return rule::unary_float("logit", self); }, logit_kernel)
      .in_place("logit_")
      .out("logit.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", logit_gradient);
  aten.def("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
      .compute([](const Tensor& self, std::optional<double>, std::optional<double>,
                  std::optional<double>) { return rule::like("nan_to_num", self, {}, {}, {}, {}, {}); },
               nan_to_num_kernel)
      .in_place("nan_to_num_")
      .out("nan_to_num.out")
      .tags(Tag::made_like_self, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(g["self"].isfinite()); });
  aten.def("conj(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) { return itself("conj", self); });
  aten.def("conj_physical(Tensor self) -> Tensor").tags(Tag::not_whole).composite([](const Tensor& self) {
    return itself("conj_physical", self);
  });
}

}  // namespace calque
