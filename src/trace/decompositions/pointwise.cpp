// Elementwise operators that the core set does not have.

#include <cmath>
#include <limits>
#include <numbers>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/special.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/sym/sym_math.h"
#include "calque/tensor/finfo.h"
#include "op/rule/pointwise.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

Tensor xlogy_of(const Tensor& a, const Tensor& b) {
  const Tensor is_zero = eq(a, Scalar(0));
  const Tensor product = mul(a, log(b));
  const Tensor rhs = where(is_zero, Scalar(0), product);
  return where(isnan(b), Scalar(std::numeric_limits<double>::quiet_NaN()), rhs);
}

Tensor scalar_tensor_like(const Scalar& value, const Tensor& like) {
  return call("prims::scalar_tensor", {value}, {{"dtype", like.dtype()}, {"device", like.device()}}).to_tensor();
}

// Both in their common sizes; a number of the processor's stays one.
std::pair<Tensor, Tensor> broadcast(const Tensor& a, const Tensor& b) {
  const SymInts sizes = broadcast_sizes(a.sym_sizes(), b.sym_sizes(), "broadcast");
  const auto expanded = [&](const Tensor& t) {
    if (t.dim() == 0) return t;
    bool differs = static_cast<size_t>(t.dim()) != sizes.size();
    for (size_t d = 0; d < sizes.size() && !differs; ++d) differs = guard_or(t.sym_sizes()[d] != sizes[d], false);
    return differs ? expand(t, sizes) : t;
  };
  const Tensor first = expanded(a);
  return {first, expanded(b)};
}

Tensor laid_out_like(const Tensor& output, std::initializer_list<Tensor> inputs) {
  std::vector<const Tensor*> with_dims;
  for (const Tensor& t : inputs)
    if (t.dim() > 0) with_dims.push_back(&t);
  if (with_dims.empty() || output.dim() == 0) return output;
  const SymInts strides = rule::pointwise_strides(SymInts(output.sym_sizes().begin(), output.sym_sizes().end()), with_dims);
  if (guard(sym_eq(output.sym_strides(), strides))) return output;
  return call("prims::copy_strided", {output, Argument<SymIntList>::box(strides)}).to_tensor();
}

Tensor lerp_of(const Tensor& start, const Tensor& end, const Tensor& weight) {
  const Tensor mask = abs(weight) >= Scalar(0.5);
  const Tensor coefficient = where(mask, weight - 1, weight);
  const Tensor base = where(mask, end, start);
  return coefficient * (end - start) + base;
}

Tensor is_infinity(const Tensor& a, double infinity) {
  if (a.is_floating_point()) return eq(a, Scalar(infinity));
  return zeros_like(a, DType::bool_, std::nullopt, std::nullopt, false);
}

}  // namespace

void decompose_pointwise(DecompositionBuilder& table) {
  table.add_promoted("addcdiv", {0, 1, 2}, Kind::int_to_float,
                     [](const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) -> Tensor {
                       return self + tensor1 * value / tensor2;
                     });
  table.add_promoted("addcmul", {0, 1, 2}, Kind::standard,
                     [](const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) -> Tensor {
                       return self + tensor1 * value * tensor2;
                     });
  table.add("clamp_max", [](const Tensor& self, const Scalar& max) -> Tensor { return clamp(self, std::nullopt, max); });
  table.add("clamp_min", [](const Tensor& self, const Scalar& min) -> Tensor { return clamp(self, min); });
  table.add("clamp_max.Tensor",
            [](const Tensor& self, const Tensor& max) -> Tensor { return clamp_Tensor(self, Tensor(), max); });
  table.add("clamp_min.Tensor",
            [](const Tensor& self, const Tensor& min) -> Tensor { return clamp_Tensor(self, min, Tensor()); });
  table.add_promoted("deg2rad", {0}, Kind::int_to_float,
                     [](const Tensor& self) -> Tensor { return self * 0.017453292519943295; });
  table.add_promoted("rad2deg", {0}, Kind::int_to_float,
                     [](const Tensor& self) -> Tensor { return self * 57.29577951308232; });
  table.add("floor_divide", [](const Tensor& self, const Tensor& other) -> Tensor { return div(self, other, "floor"); });
  table.add("floor_divide.Scalar",
            [](const Tensor& self, const Scalar& other) -> Tensor { return div(self, number_tensor(other), "floor"); });
  table.add_promoted("frac", {0}, Kind::standard, [](const Tensor& x) -> Tensor { return sub(x, trunc(x)); });
  table.add_promoted("isneginf", {0}, Kind::always_bool,
                     [](const Tensor& a) -> Tensor { return is_infinity(a, -std::numeric_limits<double>::infinity()); });
  table.add_promoted("isposinf", {0}, Kind::always_bool,
                     [](const Tensor& a) -> Tensor { return is_infinity(a, std::numeric_limits<double>::infinity()); });
  table.add_promoted(
      "lerp.Scalar", {0, 1, 2}, Kind::standard, [](const Tensor& start, const Tensor& end, const Scalar& weight) -> Tensor {
        return laid_out_like(
            lerp_of(start, end, new_full(start, SymIntList{}, weight, std::nullopt, std::nullopt, std::nullopt, false)),
            {start, end});
      });
  table.add_promoted("lerp.Tensor", {0, 1, 2}, Kind::standard,
                     [](const Tensor& start, const Tensor& end, const Tensor& weight) -> Tensor {
                       return laid_out_like(lerp_of(start, end, weight), {start, end, weight});
                     });
  table.add_promoted("logaddexp", {0, 1}, Kind::standard, [](const Tensor& given_a, const Tensor& given_b) -> Tensor {
    const auto [a, b] = broadcast(given_a, given_b);
    const Tensor mask = ge(a, b);
    const Tensor more = where(mask, a, b);
    const Tensor less = where(mask, b, a);
    const Tensor infinite = logical_not(isfinite(a));
    const Tensor same_infinity = logical_and(infinite, eq(a, b));
    return where(same_infinity, a, more + log1p(exp(less - more)));
  });
  table.add_promoted("logaddexp2", {0, 1}, Kind::standard, [](const Tensor& given_a, const Tensor& given_b) -> Tensor {
    const auto [a, b] = broadcast(given_a, given_b);
    const Tensor mask = ge(a, b);
    const Tensor more = where(mask, a, b);
    const Tensor less = where(mask, b, a);
    const Tensor infinite = isinf(a);
    const Tensor same_infinity = logical_and(infinite, eq(a, b));
    const Tensor result = more + log1p(exp2(less - more)) * (1.0 / std::numbers::ln2);
    return where(same_infinity, a, result);
  });
  table.add_promoted("logit", {0}, Kind::int_to_float, [](const Tensor& self, std::optional<double> eps) -> Tensor {
    const double lo = eps.value_or(-1.0);
    const double hi = 1 - lo;
    const Tensor below = self < Scalar(lo);
    const Tensor above = self > Scalar(hi);
    const Tensor limited = where(below, Scalar(lo), where(above, Scalar(hi), self));
    return log(true_divide(limited, sub(number_tensor(1), limited)));
  });
  table.add_promoted("mvlgamma", {0}, Kind::int_to_float, [](const Tensor& a, int64_t p) -> Tensor {
    const double c = 0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * std::log(std::numbers::pi);
    const Tensor b = arange(Scalar(1 - p), Scalar(1), Scalar(1), a.dtype(), std::nullopt, a.device(), false) * 0.5;
    return sum(lgamma(a.unsqueeze(-1) + b), IntList{-1}) + c;
  });
  table.add(
      "nan_to_num",
      [](const Tensor& a, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) -> Tensor {
        if (is_integral(a.dtype())) return clone(a);
        Tensor result = where(isnan(a), Scalar(nan.value_or(0.0)), a);
        result = where(isneginf(a), Scalar(neginf.value_or(lowest_finite(a.dtype()))), result);
        return where(isposinf(a), Scalar(posinf.value_or(largest_finite(a.dtype()))), result);
      });
  table.add("rsub.Tensor",
            [](const Tensor& self, const Tensor& other, const Scalar& alpha) -> Tensor { return sub(other, self, alpha); });
  table.add("rsub.Scalar", [](const Tensor& self, const Scalar& other, const Scalar& alpha) -> Tensor {
    return sub(number_tensor(other), self, alpha);
  });
  table.add_promoted("sgn", {0}, Kind::standard, [](const Tensor& a) -> Tensor {
    if (!is_complex(a.dtype())) return sign(a);
    const Tensor magnitude = abs(a);
    const Tensor is_zero = eq(magnitude, Scalar(0));
    return where(is_zero, Scalar(0), a / magnitude);
  });
  table.add_promoted("sinc", {0}, Kind::int_to_float, [](const Tensor& x) -> Tensor {
    const Tensor a = x * std::numbers::pi;
    const Tensor is_zero = eq(a, Scalar(0));
    return where(is_zero, Scalar(1), sin(a) / a);
  });
  table.add_promoted("special_entr", {0}, Kind::int_to_float, [](const Tensor& a) -> Tensor {
    const Tensor is_nan = isnan(a);
    const Tensor positive = a > Scalar(0);
    const Tensor negative = -a;
    const Tensor inside = negative * log(a);
    const Tensor is_zero = eq(a, Scalar(0));
    const Tensor outside = where(is_zero, Scalar(0), Scalar(-std::numeric_limits<double>::infinity()));
    return where(is_nan, a, where(positive, inside, outside));
  });
  table.add_promoted("special_log_ndtr", {0}, Kind::int_to_float, [](const Tensor& a) -> Tensor {
    const Tensor t = a * 0.7071067811865476;
    const Tensor below = a < Scalar(1.0);
    const Tensor left = log(special_erfcx(-t) / 2);
    const Tensor from_left = left - t * t;
    const Tensor from_right = log1p(-erfc(t) / 2);
    return where(below, from_left, from_right);
  });
  table.add_promoted("xlogy.Tensor", {0, 1}, Kind::int_to_float,
                     [](const Tensor& a, const Tensor& b) -> Tensor { return xlogy_of(a, b); });
  table.add_promoted("xlogy.Scalar_Other", {0, 1}, Kind::int_to_float,
                     [](const Tensor& a, const Scalar& b) -> Tensor { return xlogy_of(a, scalar_tensor_like(b, a)); });
  table.add_promoted("xlogy.Scalar_Self", {0, 1}, Kind::int_to_float,
                     [](const Scalar& a, const Tensor& b) -> Tensor { return xlogy_of(scalar_tensor_like(a, b), b); });
}

}  // namespace calque
