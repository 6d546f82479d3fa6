// Arithmetic on two operands: add, sub, mul, div, powers, extrema, with their Scalar overloads.
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/formulas.h"
#include "op/rule/binary_kernels.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Binary;
using rule::OpName;

[[noreturn]] void refuse(const char* op, DType d) {
  throw UserError(ErrorKind::unsupported_operator, std::string(op) + ": not implemented for dtype " + std::string(name(d)));
}

// alpha must not be of a higher kind than what is computed.
void check_alpha(const char* op, DType common, const Scalar& alpha) {
  if (alpha.is_boolean() && common != DType::bool_)
    throw UserError(std::string(op) + ": Boolean alpha only supported for Boolean results, found dtype " +
                    std::string(name(common)));
  if (alpha.is_floating() && is_integral(common))
    throw UserError(std::string(op) +
                    ": For integral input tensors, argument alpha must not be a floating point number, found " +
                    alpha.str());
}
template <OpName op>
void check_sub(DType a, DType b) {
  if (std::string_view(op.text) == "add") return;
  if (a == DType::bool_ && b == DType::bool_)
    throw UserError(std::string(op.text) +
                    ": subtraction of two bool tensors is not supported; use bitwise_xor or logical_xor instead");
  if (a == DType::bool_ || b == DType::bool_)
    throw UserError(std::string(op.text) +
                    ": subtraction with a bool tensor is not supported; use bitwise_not or logical_not to invert a mask");
}

template <OpName op>
Meta add_rule(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  // rsub is sub with its operands exchanged, which shows in the strides.
  const bool exchanged = std::string_view(op.text) == "rsub";
  const Meta m = exchanged ? rule::binary(op.text, other, self) : rule::binary(op.text, self, other);
  check_sub<op>(self.dtype(), other.dtype());
  check_alpha(op.text, m.dtype, alpha);
  return m;
}
template <OpName op>
Meta add_scalar_rule(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  const Meta m = rule::pointwise_with_number(op.text, result_type(self, other), self);
  check_sub<op>(self.dtype(), other.is_boolean() ? DType::bool_ : DType::int64);
  check_alpha(op.text, m.dtype, alpha);
  return m;
}
template <class B>
void add_kernel(const Tensor& a, const B& b, const Scalar& alpha, const Tensor& out) {
  kernel::add_scaled(result_type(a, b), a, b, alpha, false, out);
}
template <class B>
void sub_kernel(const Tensor& a, const B& b, const Scalar& alpha, const Tensor& out) {
  kernel::add_scaled(result_type(a, b), a, b, alpha, true, out);
}
template <class B>
void rsub_kernel(const Tensor& a, const B& b, const Scalar& alpha, const Tensor& out) {
  kernel::add_scaled(result_type(a, b), b, a, alpha, true, out);
}

template <Binary fn>
void wide_arithmetic(const Tensor& a, const Tensor& b, const Tensor& out) {
  kernel::binary_wide(fn, result_type(a, b), a, b, out);
}
template <Binary fn>
void wide_arithmetic_scalar(const Tensor& a, const Scalar& b, const Tensor& out) {
  kernel::binary_wide(fn, result_type(a, b), a, b, out);
}

Meta divide_scalar_rule(const Tensor& a, const Scalar& b) {
  return rule::pointwise_with_number("div", float_type(result_type(a, b)), a);
}
template <class B>
void true_divide_kernel(const Tensor& a, const B& b, const Tensor& out) {
  kernel::binary_wide(Binary::div, float_type(result_type(a, b)), a, b, out);
}

// None, "trunc" or "floor".
Binary rounding(std::optional<std::string_view> mode) {
  if (!mode) return Binary::div;
  if (*mode == "trunc") return Binary::div_trunc;
  if (*mode == "floor") return Binary::div_floor;
  throw UserError("div: expected rounding_mode to be one of None, 'trunc' or 'floor', found '" + std::string(*mode) + "'");
}
template <class B>
Meta divide_mode_rule(const Tensor& a, const B& b, std::optional<std::string_view> mode) {
  const DType common = result_type(a, b);
  const DType dtype = rounding(mode) == Binary::div ? float_type(common) : common;
  if constexpr (std::is_same_v<B, Tensor>)
    return rule::pointwise("div", dtype, {&a, &b});
  else
    return rule::pointwise_with_number("div", dtype, a);
}
template <class B>
void divide_mode_kernel(const Tensor& a, const B& b, std::optional<std::string_view> mode, const Tensor& out) {
  const Binary fn = rounding(mode);
  if (fn == Binary::div) return true_divide_kernel(a, b, out);
  const DType common = result_type(a, b);
  if (common == DType::bool_) refuse("div", common);
  // A number is not rounded to 16 bits before ATen truncates, but it is before it takes the floor.
  if (fn == Binary::div_trunc && is_floating(common))
    kernel::binary_wide(fn, common, a, b, out);
  else
    kernel::binary(fn, common, a, b, out);
}

template <OpName op>
Meta no_bool(const Tensor& a, const Tensor& b) {
  const Meta m = rule::binary(op.text, a, b);
  if (m.dtype == DType::bool_) refuse(op.text, m.dtype);
  return m;
}
template <OpName op>
Meta no_bool_scalar(const Tensor& a, const Scalar& b) {
  const Meta m = rule::pointwise_with_number(op.text, result_type(a, b), a);
  if (m.dtype == DType::bool_) refuse(op.text, m.dtype);
  return m;
}
template <OpName op>
Meta only_floats(const Tensor& a, const Tensor& b) {
  const Meta m = rule::binary(op.text, a, b);
  if (!is_floating(m.dtype)) refuse(op.text, m.dtype);
  return m;
}
template <OpName op>
Meta scalar_first(const Scalar& a, const Tensor& b) {
  return rule::pointwise_with_number(op.text, result_type(b, a), b);
}
template <OpName op>
Meta float_scalar(const Tensor& a, const Scalar& b) {
  return rule::pointwise_with_number(op.text, float_type(result_type(a, b)), a);
}
template <OpName op>
Meta scalar_float(const Scalar& a, const Tensor& b) {
  return float_scalar<op>(b, a);
}
// Integers have no NaN: the ordinary extremum serves them.
template <Binary floats, Binary integers>
void ignoring_nan(const Tensor& a, const Tensor& b, const Tensor& out) {
  const DType common = result_type(a, b);
  // Of two zeros the first is the answer, but in bfloat16 the second.
  if (common == DType::bfloat16)
    kernel::binary(floats, common, b, a, out);
  else
    kernel::binary(is_floating(common) ? floats : integers, common, a, b, out);
}

// The neighbour among 16-bit numbers, which no computation in float32 finds.
template <class T>
T neighbour(T from, T towards) {
  const auto a = static_cast<float>(from), b = static_cast<float>(towards);
  if (a != a) return from;
  if (b != b || a == b) return towards;
  T r = from;
  if (a == 0)
    r.bits = static_cast<uint16_t>(b > 0 ? 1 : 0x8001);
  else
    r.bits = static_cast<uint16_t>((a < b) == (a > 0) ? from.bits + 1 : from.bits - 1);
  return r;
}
template <class T>
void neighbours(DType d, const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto dense = [&](const Tensor* t) {
    const Tensor copy = make_tensor(out.sizes(), d);
    if (t) kernel::copy(*t, copy);
    return copy;
  };
  const Tensor from = dense(&a), towards = dense(&b), result = dense(nullptr);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.mutable_data_as<T>()[i] = neighbour(from.data_as<T>()[i], towards.data_as<T>()[i]);
  kernel::copy(result, out);
}
void nextafter_kernel(const Tensor& a, const Tensor& b, const Tensor& out) {
  const DType common = result_type(a, b);
  if (common == DType::bfloat16)
    neighbours<BFloat16>(common, a, b, out);
  else if (common == DType::float16)
    neighbours<Half>(common, a, b, out);
  else
    kernel::binary(Binary::nextafter, common, a, b, out);
}

Meta pow_scalar_rule(const Tensor& self, const Scalar& exponent) {
  const DType dtype = result_type(self, exponent);
  if (is_integral(self.dtype()) && exponent.is_integral(true) && !exponent.is_symbolic() && exponent.to_int() < 0)
    throw UserError("pow: Integers to negative integer powers are not allowed (exponent " + exponent.str() +
                    "); convert self to a floating dtype first");
  return rule::pointwise("pow", dtype, {&self});
}
void pow_scalar_kernel(const Tensor& self, const Scalar& exponent, const Tensor& out) {
  kernel::pow_scalar(result_type(self, exponent), self, exponent, out);
}
void pow_kernel(const Tensor& self, const Tensor& exponent, const Tensor& out) {
  const DType common = result_type(self, exponent);
  if (common == DType::bool_) refuse("pow", common);
  kernel::binary(Binary::pow, common, self, exponent, out);
}
Meta scalar_pow_rule(const Scalar& self, const Tensor& exponent) {
  return {exponent.impl().sizes, contiguous_strides(exponent.sym_sizes()), result_type(exponent, self), exponent.device(),
          false};
}
void scalar_pow_kernel(const Scalar& self, const Tensor& exponent, const Tensor& out) {
  const DType common = result_type(exponent, self);
  if (common == DType::bool_) refuse("pow", common);
  kernel::binary(Binary::pow, common, self, exponent, out);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
Tensor divided_by(const Gradients& g) {
  const Tensor slope = g["self"].div(g["other"]).div(g["other"]);
  return g.grad().neg().mul(slope);
}
// A quotient that was rounded is flat nearly everywhere.
Tensor rounded_away(const Gradients& g, std::string_view argument) {
  return zeros_like(g.grad(), g.dtype(argument), Layout::strided, g.grad().device());
}

Tensor by_exponent(const Gradients& g) {
  const Tensor self = g["self"], exponent = g["exponent"];
  const Tensor at_zero = exponent.ge(Scalar(0));
  const Tensor undetermined = self.eq(Scalar(0)).logical_and(at_zero);
  const Tensor slope = g["result"].mul(self.log());
  return g.grad().mul(where(undetermined, gradient::number_like(Scalar(0.0), g.grad()), slope));
}
Tensor by_base(const Gradients& g) {
  const Tensor self = g["self"], exponent = g["exponent"];
  const Tensor slope = g.grad().mul(exponent.mul(self.pow(gradient::minus(exponent, Scalar(1)))));
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(exponent.eq(Scalar(0.0)), zero, slope);
}
Tensor by_base_to_number(const Gradients& g) {
  const double exponent = g.scalar("exponent").to_double();
  if (exponent == 0) return zeros_like(g["self"], {}, {}, {}, {}, MemoryFormat::contiguous);
  return g.grad().mul(gradient::times(g["self"].pow(Scalar(exponent - 1)), Scalar(exponent)));
}
Tensor by_exponent_of_number(const Gradients& g) {
  const double base = g.scalar("self").to_double();
  const Tensor slope = gradient::times(g["result"], Scalar(std::log(base)));
  if (base != 0) return g.grad().mul(slope);
  const Tensor zero = zeros(SymIntList(), g.grad().dtype(), Layout::strided, g.grad().device());
  return g.grad().mul(where(g["exponent"].ge(Scalar(0)), zero, slope));
}

TensorVector atan2_gradient(const Gradients& g) {
  const Tensor self = g["self"], other = g["other"];
  const Tensor square = self.mul(self).add(other.mul(other));
  const Tensor inverse = square.reciprocal().masked_fill(square.eq(Scalar(0)), Scalar(0));
  return {g.needs("self") ? g.grad().mul(other).mul(inverse) : Tensor(),
          g.needs("other") ? g.grad().mul(self.neg()).mul(inverse) : Tensor()};
}

// Where both are the extremum each gets half.
Tensor shared_extremum(const Gradients& g) {
  const Tensor half = gradient::over(g.grad(), Scalar(2));
  return where(g["self"].eq(g["other"]), half, g.grad());
}

Tensor xlogy_self(const Gradients& g) {
  const Tensor self = g["self"], other = g["other"];
  const Tensor slope = xlogy(g.grad(), other);
  const Tensor below = other.le(Scalar(0.0));
  return slope.masked_fill(self.eq(Scalar(0.0)).bitwise_and(below), Scalar(0.0));
}
Tensor xlogy_self_number(const Gradients& g) {
  const Tensor slope = xlogy(g.grad(), g.scalar("other"));
  return g.scalar("other").to_double() > 0 ? slope : slope.masked_fill(g["self"].eq(Scalar(0.0)), Scalar(0.0));
}

Tensor copysign_self(const Gradients& g) {
  const Tensor sign = g["result"].div(g["self"]);
  sign.masked_fill_(g["self"].eq(Scalar(0)), Scalar(0));
  return g.grad().mul(sign);
}

}  // namespace

void register_arithmetic(Library& aten);
void register_arithmetic(Library& aten) {
  aten.def("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .python_alias("operator.add")
      .tags(Tag::number_for_tensor)
      .compute(add_rule<"add">, add_kernel<Tensor>)
      .in_place("add_.Tensor", PythonAlias{"operator.iadd"}, Tag::number_for_tensor)
      .out("add.out", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "", [](const Gradients& g) { return gradient::maybe_times(g.grad(), g.scalar("alpha")); })
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .tags(Tag::number_for_tensor)
      .wraps_numbers()
      .compute(add_scalar_rule<"add">, add_kernel<Scalar>)
      .in_place("add_.Scalar", Tag::number_for_tensor)
      .out("add.Scalar_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .python_alias("operator.sub")
      .tags(Tag::number_for_tensor)
      .compute(add_rule<"sub">, sub_kernel<Tensor>)
      .in_place("sub_.Tensor", PythonAlias{"operator.isub"}, Tag::number_for_tensor)
      .out("sub.out", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "", [](const Gradients& g) { return gradient::maybe_times(g.grad().neg(), g.scalar("alpha")); })
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .tags(Tag::number_for_tensor)
      .wraps_numbers()
      .compute(add_scalar_rule<"sub">, sub_kernel<Scalar>)
      .in_place("sub_.Scalar", Tag::number_for_tensor)
      .out("sub.Scalar_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .compute(add_rule<"rsub">, rsub_kernel<Tensor>)
      .out("rsub.Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .gradient("other", "", [](const Gradients& g) { return g.grad(); })
      .gradient("self", "", [](const Gradients& g) { return gradient::maybe_times(g.grad().neg(), g.scalar("alpha")); });
  aten.def("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .compute(add_scalar_rule<"rsub">, rsub_kernel<Scalar>)
      .out("rsub.Scalar_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .gradient("self", "", [](const Gradients& g) { return gradient::maybe_times(g.grad().neg(), g.scalar("alpha")); });
  aten.def("mul.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.mul")
      .tags(Tag::number_for_tensor)
      .compute(rule::Named<"mul">::binary, wide_arithmetic<Binary::mul>)
      .in_place("mul_.Tensor", PythonAlias{"operator.imul"}, Tag::number_for_tensor)
      .out("mul.out", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self", [](const Gradients& g) { return g.grad().mul(g["self"]); })
      .gradient("self", "other", [](const Gradients& g) { return g.grad().mul(g["other"]); });
  aten.def("mul.Scalar(Tensor self, Scalar other) -> Tensor")
      .tags(Tag::number_for_tensor)
      .wraps_numbers()
      .compute(rule::Named<"mul">::binary_scalar, wide_arithmetic_scalar<Binary::mul>)
      .in_place("mul_.Scalar", Tag::number_for_tensor)
      .out("mul.Scalar_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::times(g.grad(), g.scalar("other")); });
  aten.def("div.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.truediv")
      .tags(Tag::number_for_tensor)
      .compute(rule::Named<"div">::binary_float, true_divide_kernel<Tensor>)
      .in_place("div_.Tensor", PythonAlias{"operator.itruediv"}, Tag::number_for_tensor)
      .out("div.out", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other", divided_by)
      .gradient("self", "other", [](const Gradients& g) { return g.grad().div(g["other"]); });
  aten.def("div.Scalar(Tensor self, Scalar other) -> Tensor")
      .tags(Tag::number_for_tensor)
      .wraps_numbers()
      .compute(divide_scalar_rule, true_divide_kernel<Scalar>)
      .in_place("div_.Scalar", Tag::number_for_tensor)
      .out("div.Scalar_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::over(g.grad(), g.scalar("other")); });
  aten.def("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
      .tags(Tag::number_for_tensor)
      .compute(divide_mode_rule<Tensor>, divide_mode_kernel<Tensor>)
      .in_place("div_.Tensor_mode", Tag::number_for_tensor)
      .out("div.out_mode", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  return g.argument("rounding_mode").is_none() ? divided_by(g) : rounded_away(g, "other");
                })
      .gradient("self", "other", [](const Gradients& g) {
        return g.argument("rounding_mode").is_none() ? g.grad().div(g["other"]) : rounded_away(g, "self");
      });
  aten.def("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
      .tags(Tag::number_for_tensor)
      .wraps_numbers()
      .compute(divide_mode_rule<Scalar>, divide_mode_kernel<Scalar>)
      .in_place("div_.Scalar_mode", Tag::number_for_tensor)
      .out("div.Scalar_mode_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) {
        return g.argument("rounding_mode").is_none() ? gradient::over(g.grad(), g.scalar("other")) : rounded_away(g, "self");
      });
  aten.def("floor_divide(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.floordiv")
      .tags(Tag::number_for_tensor)
      .compute(rule::Named<"floor_divide">::binary, arithmetic<Binary::div_floor>)
      .in_place("floor_divide_.Tensor", PythonAlias{"operator.ifloordiv"}, Tag::number_for_tensor, Tag::left_whole)
      .out("floor_divide.out", Tag::number_for_tensor)
      .tags(Tag::cast_out, Tag::pointwise)
      .no_gradient();
  aten.def("floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
      .tags(Tag::number_for_tensor)
      .compute(rule::Named<"floor_divide">::binary_scalar, arithmetic_scalar<Binary::div_floor>)
      .in_place("floor_divide_.Scalar", Tag::number_for_tensor, Tag::left_whole)
      .out("floor_divide.Scalar_out", Tag::number_for_tensor)
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("true_divide.Tensor(Tensor self, Tensor other) -> Tensor")
      .tags(Tag::number_for_tensor)
      .composite([](const Tensor& a, const Tensor& b) { return div(a, b); })
      .in_place("true_divide_.Tensor", Tag::number_for_tensor)
      .out("true_divide.out", Tag::number_for_tensor)
      .tags(Tag::cast_out);
  aten.def("true_divide.Scalar(Tensor self, Scalar other) -> Tensor")
      .tags(Tag::number_for_tensor)
      .composite([](const Tensor& a, const Scalar& b) { return div(a, b); })
      .in_place("true_divide_.Scalar", Tag::number_for_tensor);
  aten.def("remainder.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.mod")
      .compute(no_bool<"remainder">, arithmetic<Binary::remainder>)
      .in_place("remainder_.Tensor", PythonAlias{"operator.imod"})
      .out("remainder.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  const Tensor whole = g["self"].div(g["other"], "floor");
                  return g.grad().neg().mul(whole);
                })
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("remainder.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(no_bool_scalar<"remainder">, arithmetic_scalar<Binary::remainder>)
      .in_place("remainder_.Scalar")
      .out("remainder.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("fmod.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute(no_bool<"fmod">, arithmetic<Binary::fmod>)
      .in_place("fmod_.Tensor")
      .out("fmod.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  const Tensor whole = g["self"].div(g["other"], "trunc");
                  return g.grad().neg().mul(whole);
                })
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("fmod.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(no_bool_scalar<"fmod">, arithmetic_scalar<Binary::fmod>)
      .in_place("fmod_.Scalar")
      .out("fmod.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_first<"remainder">, scalar_arithmetic<Binary::remainder>)
      .out("remainder.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise);
  aten.def("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .python_alias("operator.pow")
      .compute(rule::Named<"pow">::binary, pow_kernel)
      .in_place("pow_.Tensor", PythonAlias{"operator.ipow"})
      .out("pow.Tensor_Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("exponent", "self exponent result", by_exponent)
      .gradient("self", "self exponent", by_base);
  aten.def("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .compute(pow_scalar_rule, pow_scalar_kernel)
      .in_place("pow_.Scalar")
      .out("pow.Tensor_Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self", "self", by_base_to_number);
  aten.def("pow.Scalar(Scalar self, Tensor exponent) -> Tensor")
      .compute(scalar_pow_rule, scalar_pow_kernel)
      .out("pow.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("exponent", "exponent result", by_exponent_of_number);
  aten.def("atan2(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"atan2">::binary_float, float_arithmetic<Binary::atan2>)
      .in_place("atan2_")
      .out("atan2.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("self other", "self other", atan2_gradient);
  aten.def("maximum(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"maximum">::binary, arithmetic<Binary::maximum>)
      .out("maximum.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other",
                [](const Gradients& g) { return shared_extremum(g).masked_fill_(g["self"].gt(g["other"]), Scalar(0)); })
      .gradient("self", "self other",
                [](const Gradients& g) { return shared_extremum(g).masked_fill_(g["self"].lt(g["other"]), Scalar(0)); });
  aten.def("minimum(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"minimum">::binary, arithmetic<Binary::minimum>)
      .out("minimum.out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("other", "self other",
                [](const Gradients& g) { return shared_extremum(g).masked_fill_(g["self"].lt(g["other"]), Scalar(0)); })
      .gradient("self", "self other",
                [](const Gradients& g) { return shared_extremum(g).masked_fill_(g["self"].gt(g["other"]), Scalar(0)); });
  aten.def("fmax(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"fmax">::binary, ignoring_nan<Binary::fmax, Binary::maximum>)
      .out("fmax.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  const Tensor self = g["self"], other = g["other"];
                  return g.grad().masked_fill(self.ge(other).logical_or_(other.isnan()), Scalar(0));
                })
      .gradient("self", "self other", [](const Gradients& g) {
        const Tensor self = g["self"], other = g["other"];
        return g.grad().masked_fill(self.ge(other).logical_or_(other.isnan()).logical_not_(), Scalar(0));
      });
  aten.def("fmin(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"fmin">::binary, ignoring_nan<Binary::fmin, Binary::minimum>)
      .out("fmin.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  const Tensor self = g["self"], other = g["other"];
                  return g.grad().masked_fill(self.le(other).logical_or_(other.isnan()), Scalar(0));
                })
      .gradient("self", "self other", [](const Gradients& g) {
        const Tensor self = g["self"], other = g["other"];
        return g.grad().masked_fill(self.le(other).logical_or_(other.isnan()).logical_not_(), Scalar(0));
      });
  aten.def("max.other(Tensor self, Tensor other) -> Tensor")
      .composite([](const Tensor& a, const Tensor& b) { return maximum(a, b); })
      .out("max.out")
      .tags(Tag::cast_out);
  aten.def("min.other(Tensor self, Tensor other) -> Tensor")
      .composite([](const Tensor& a, const Tensor& b) { return minimum(a, b); })
      .out("min.out")
      .tags(Tag::cast_out);
  aten.def("xlogy.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"xlogy">::binary_float, float_arithmetic<Binary::xlogy>)
      .in_place("xlogy_.Tensor")
      .out("xlogy.OutTensor")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "self other", [](const Gradients& g) { return g.grad().mul(g["self"]).div(g["other"]); })
      .gradient("self", "self other", xlogy_self);
  aten.def("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor")
      .compute(float_scalar<"xlogy">, float_arithmetic_scalar<Binary::xlogy>)
      .in_place("xlogy_.Scalar_Other")
      .out("xlogy.OutScalar_Other")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", xlogy_self_number);
  aten.def("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_float<"xlogy">, scalar_float_arithmetic<Binary::xlogy>)
      .out("xlogy.OutScalar_Self")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "other",
                [](const Gradients& g) { return gradient::times(g.grad(), g.scalar("self")).div(g["other"]); });
  aten.def("copysign.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"copysign">::binary_float, float_arithmetic<Binary::copysign>)
      .in_place("copysign_.Tensor")
      .out("copysign.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); })
      .gradient("self", "self result", copysign_self);
  aten.def("copysign.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(float_scalar<"copysign">, float_arithmetic_scalar<Binary::copysign>)
      .in_place("copysign_.Scalar")
      .out("copysign.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", copysign_self);
  aten.def("hypot(Tensor self, Tensor other) -> Tensor")
      .compute(only_floats<"hypot">, arithmetic<Binary::hypot>)
      .in_place("hypot_")
      .out("hypot.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "other result", [](const Gradients& g) { return g.grad().mul(g["other"]).div(g["result"]); })
      .gradient("self", "self result", [](const Gradients& g) { return g.grad().mul(g["self"]).div(g["result"]); });
  aten.def("nextafter(Tensor self, Tensor other) -> Tensor")
      .compute(only_floats<"nextafter">, nextafter_kernel)
      .in_place("nextafter_")
      .out("nextafter.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); })
      .gradient("self", "self other",
                [](const Gradients& g) { return gradient::where_or(g["self"].ne(g["other"]), g.grad(), Scalar(0)); });
  aten.def("logaddexp(Tensor self, Tensor other) -> Tensor")
      .compute(only_floats<"logaddexp">, arithmetic<Binary::logaddexp>)
      .out("logaddexp.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "self other",
                [](const Gradients& g) { return g.grad().div(gradient::plus(g["self"].sub(g["other"]).exp(), Scalar(1))); })
      .gradient("self", "self other",
                [](const Gradients& g) { return g.grad().div(gradient::plus(g["other"].sub(g["self"]).exp(), Scalar(1))); });
  aten.def("logaddexp2(Tensor self, Tensor other) -> Tensor")
      .compute(only_floats<"logaddexp2">, arithmetic<Binary::logaddexp2>)
      .out("logaddexp2.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("other", "self other",
                [](const Gradients& g) {
                  return g.grad().div(gradient::plus(pow(Scalar(2), g["self"].sub(g["other"])), Scalar(1)));
                })
      .gradient("self", "self other", [](const Gradients& g) {
        return g.grad().div(gradient::plus(pow(Scalar(2), g["other"].sub(g["self"])), Scalar(1)));
      });
}

}  // namespace calque
