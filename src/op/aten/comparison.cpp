// Comparisons, logical and bitwise operators of two operands.
#include "calque/op/aten/comparison.h"
#include "kernel/cpu/elementwise/binary.h"
#include "op/gradient/formulas.h"
#include "op/rule/binary_kernels.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Binary;

template <rule::OpName op>
void need_integers(DType d) {
  if (!is_integral(d))
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op.text) + ": expected integer or bool operands, found dtype " + std::string(name(d)));
}
template <rule::OpName op>
Meta integers(const Tensor& a, const Tensor& b) {
  const Meta m = rule::binary(op.text, a, b);
  need_integers<op>(m.dtype);
  return m;
}
template <rule::OpName op>
Meta integers_scalar(const Tensor& a, const Scalar& b) {
  const Meta m = rule::pointwise(op.text, result_type(a, b), {&a});
  need_integers<op>(m.dtype);
  return m;
}
template <rule::OpName op>
Meta scalar_integers(const Scalar& a, const Tensor& b) {
  return integers_scalar<op>(b, a);
}

}  // namespace

void register_comparison(Library& aten);
void register_comparison(Library& aten) {
  aten.def("eq.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.eq")
      .compute(rule::Named<"eq">::comparison, compare<Binary::eq>)
      .in_place("eq_.Tensor")
      .out("eq.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("eq.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"eq">::comparison_scalar, compare_scalar<Binary::eq>)
      .in_place("eq_.Scalar")
      .out("eq.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("ne.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.ne")
      .compute(rule::Named<"ne">::comparison, compare<Binary::ne>)
      .in_place("ne_.Tensor")
      .out("ne.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("ne.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"ne">::comparison_scalar, compare_scalar<Binary::ne>)
      .in_place("ne_.Scalar")
      .out("ne.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("lt.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.lt")
      .compute(rule::Named<"lt">::comparison, compare<Binary::lt>)
      .in_place("lt_.Tensor")
      .out("lt.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("lt.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"lt">::comparison_scalar, compare_scalar<Binary::lt>)
      .in_place("lt_.Scalar")
      .out("lt.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("le.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.le")
      .compute(rule::Named<"le">::comparison, compare<Binary::le>)
      .in_place("le_.Tensor")
      .out("le.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("le.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"le">::comparison_scalar, compare_scalar<Binary::le>)
      .in_place("le_.Scalar")
      .out("le.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("gt.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.gt")
      .compute(rule::Named<"gt">::comparison, compare<Binary::gt>)
      .in_place("gt_.Tensor")
      .out("gt.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("gt.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"gt">::comparison_scalar, compare_scalar<Binary::gt>)
      .in_place("gt_.Scalar")
      .out("gt.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("ge.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.ge")
      .compute(rule::Named<"ge">::comparison, compare<Binary::ge>)
      .in_place("ge_.Tensor")
      .out("ge.Tensor_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); })
      .gradient("other", "", [](const Gradients& g) { return gradient::zeros_of(g, "other"); });
  aten.def("ge.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(rule::Named<"ge">::comparison_scalar, compare_scalar<Binary::ge>)
      .in_place("ge_.Scalar")
      .out("ge.Scalar_out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient("result")
      .gradient("self", "", [](const Gradients& g) { return gradient::zeros_of(g, "self"); });
  aten.def("logical_and(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"logical_and">::comparison, compare<Binary::logical_and>)
      .in_place("logical_and_")
      .out("logical_and.out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("logical_or(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"logical_or">::comparison, compare<Binary::logical_or>)
      .in_place("logical_or_")
      .out("logical_or.out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("logical_xor(Tensor self, Tensor other) -> Tensor")
      .compute(rule::Named<"logical_xor">::comparison, compare<Binary::logical_xor>)
      .in_place("logical_xor_")
      .out("logical_xor.out")
      .tags(Tag::any_out, Tag::pointwise, Tag::core)
      .no_gradient();

  aten.def("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.and_")
      .compute(integers<"bitwise_and">, arithmetic<Binary::bitwise_and>)
      .in_place("bitwise_and_.Tensor", PythonAlias{"operator.iand"})
      .out("bitwise_and.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"bitwise_and">, arithmetic_scalar<Binary::bitwise_and>)
      .in_place("bitwise_and_.Scalar")
      .out("bitwise_and.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_integers<"bitwise_and">, scalar_arithmetic<Binary::bitwise_and>)
      .out("bitwise_and.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__and__.Tensor(Tensor self, Tensor other) -> Tensor").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_and(a, b);
  });
  aten.def("__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_and_(a, b);
  });
  aten.def("__and__.Scalar(Tensor self, Scalar other) -> Tensor").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_and(a, b);
  });
  aten.def("__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_and_(a, b);
  });
  aten.def("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.or_")
      .compute(integers<"bitwise_or">, arithmetic<Binary::bitwise_or>)
      .in_place("bitwise_or_.Tensor", PythonAlias{"operator.ior"})
      .out("bitwise_or.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"bitwise_or">, arithmetic_scalar<Binary::bitwise_or>)
      .in_place("bitwise_or_.Scalar")
      .out("bitwise_or.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_integers<"bitwise_or">, scalar_arithmetic<Binary::bitwise_or>)
      .out("bitwise_or.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__or__.Tensor(Tensor self, Tensor other) -> Tensor").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_or(a, b);
  });
  aten.def("__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_or_(a, b);
  });
  aten.def("__or__.Scalar(Tensor self, Scalar other) -> Tensor").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_or(a, b);
  });
  aten.def("__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_or_(a, b);
  });
  aten.def("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.xor")
      .compute(integers<"bitwise_xor">, arithmetic<Binary::bitwise_xor>)
      .in_place("bitwise_xor_.Tensor", PythonAlias{"operator.ixor"})
      .out("bitwise_xor.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"bitwise_xor">, arithmetic_scalar<Binary::bitwise_xor>)
      .in_place("bitwise_xor_.Scalar")
      .out("bitwise_xor.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .no_gradient();
  aten.def("bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_integers<"bitwise_xor">, scalar_arithmetic<Binary::bitwise_xor>)
      .out("bitwise_xor.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__xor__.Tensor(Tensor self, Tensor other) -> Tensor").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_xor(a, b);
  });
  aten.def("__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)").composite([](const Tensor& a, const Tensor& b) {
    return bitwise_xor_(a, b);
  });
  aten.def("__xor__.Scalar(Tensor self, Scalar other) -> Tensor").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_xor(a, b);
  });
  aten.def("__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)").composite([](const Tensor& a, const Scalar& b) {
    return bitwise_xor_(a, b);
  });
  aten.def("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute(integers<"bitwise_left_shift">, arithmetic<Binary::shift_left>)
      .in_place("bitwise_left_shift_.Tensor")
      .out("bitwise_left_shift.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .no_gradient();
  aten.def("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"bitwise_left_shift">, arithmetic_scalar<Binary::shift_left>)
      .in_place("bitwise_left_shift_.Tensor_Scalar")
      .out("bitwise_left_shift.Tensor_Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .no_gradient();
  aten.def("bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_integers<"bitwise_left_shift">, scalar_arithmetic<Binary::shift_left>)
      .out("bitwise_left_shift.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__lshift__.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.lshift")
      .compute(integers<"__lshift__">, arithmetic<Binary::shift_left>)
      .in_place("__ilshift__.Tensor", PythonAlias{"operator.ilshift"})
      .out("__lshift__.Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__lshift__.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"__lshift__">, arithmetic_scalar<Binary::shift_left>)
      .in_place("__ilshift__.Scalar")
      .out("__lshift__.Scalar_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute(integers<"bitwise_right_shift">, arithmetic<Binary::shift_right>)
      .in_place("bitwise_right_shift_.Tensor")
      .out("bitwise_right_shift.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .no_gradient();
  aten.def("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"bitwise_right_shift">, arithmetic_scalar<Binary::shift_right>)
      .in_place("bitwise_right_shift_.Tensor_Scalar")
      .out("bitwise_right_shift.Tensor_Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .no_gradient();
  aten.def("bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .compute(scalar_integers<"bitwise_right_shift">, scalar_arithmetic<Binary::shift_right>)
      .out("bitwise_right_shift.Scalar_Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__rshift__.Tensor(Tensor self, Tensor other) -> Tensor")
      .python_alias("operator.rshift")
      .compute(integers<"__rshift__">, arithmetic<Binary::shift_right>)
      .in_place("__irshift__.Tensor", PythonAlias{"operator.irshift"})
      .out("__rshift__.Tensor_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
  aten.def("__rshift__.Scalar(Tensor self, Scalar other) -> Tensor")
      .compute(integers_scalar<"__rshift__">, arithmetic_scalar<Binary::shift_right>)
      .in_place("__irshift__.Scalar")
      .out("__rshift__.Scalar_out")
      .tags(Tag::dense_out, Tag::pointwise)
      .no_gradient();
}

}  // namespace calque
