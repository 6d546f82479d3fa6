// Operators of three operands: filling by a mask, clamping by tensors, interpolation, fused arithmetic.
#include "kernel/cpu/elementwise/ternary.h"

#include <limits>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/sym/sym_math.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/unary.h"
#include "op/gradient/formulas.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Binary;
using kernel::Ternary;

// ---- masked_fill ----------------------------------------------------------------------------------------------------
Meta masked_fill_rule(const Tensor& self, const Tensor& mask) {
  if (mask.dtype() != DType::bool_)
    throw UserError("masked_fill: only supports boolean masks, but got mask with dtype " + std::string(name(mask.dtype())));
  Meta m;
  m.sizes = broadcast_sizes(self.sym_sizes(), mask.sym_sizes(), "masked_fill");
  m.strides = contiguous_strides(m.sizes);
  m.dtype = self.dtype();
  m.device = self.device();
  return m;
}
Meta masked_fill_tensor_rule(const Tensor& self, const Tensor& mask, const Tensor& value) {
  if (value.dim() != 0)
    throw UserError("masked_fill: only supports a 0-dimensional value tensor, but got tensor with " +
                    std::to_string(value.dim()) + " dimension(s).");
  return masked_fill_rule(self, mask);
}
// The number is converted with a check for overflow, as PyTorch's scalars are.
void masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out) {
  Scalar number;
  dispatch(value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = *value.data_as<T>();
    if constexpr (is_integral_type<T> || std::is_floating_point_v<T>)
      number = Scalar(x);
    else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      number = Scalar(std::complex<double>(x));
    else
      number = Scalar(static_cast<double>(static_cast<float>(x)));
  });
  kernel::masked_fill(self, mask, number, out);
}

// ---- clamp by tensors -----------------------------------------------------------------------------------------------
Meta clamp_rule(const Tensor& self, const Tensor& min, const Tensor& max) {
  if (!min.defined() && !max.defined()) throw UserError("clamp: at least one of 'min' or 'max' must not be None");
  TypePromotion type;
  type.add(self);
  if (min.defined()) type.add(min);
  if (max.defined()) type.add(max);
  const DType d = type.result();
  if (is_complex(d)) throw UserError("clamp: not supported for complex types");
  return rule::pointwise("clamp", d, {&self, &min, &max});
}
void clamp_kernel(const Tensor& self, const Tensor& min, const Tensor& max, const Tensor& out) {
  const DType d = clamp_rule(self, min, max).dtype;
  if (min.defined() && max.defined() && d == DType::bool_) kernel::not_implemented("clamp_cpu", d);
  if (min.defined() && max.defined())
    kernel::ternary(Ternary::clamp, d, self, min, max, Scalar(1), out);
  else
    kernel::binary(min.defined() ? Binary::maximum : Binary::minimum, d, self, min.defined() ? min : max, out);
}

// ---- lerp, addcmul, addcdiv -----------------------------------------------------------------------------------------
void same_dtype(const char* op, const char* what, const Tensor& self, const Tensor& other) {
  if (self.dtype() != other.dtype())
    throw UserError(std::string(op) + ": expected dtype " + std::string(name(self.dtype())) + " for `" + what +
                    "` but got dtype " + std::string(name(other.dtype())));
}
Meta lerp_scalar_rule(const Tensor& self, const Tensor& end, const Scalar&) {
  same_dtype("lerp", "end", self, end);
  return rule::pointwise("lerp", self.dtype(), {&self, &end});
}
Meta lerp_tensor_rule(const Tensor& self, const Tensor& end, const Tensor& weight) {
  same_dtype("lerp", "end", self, end);
  same_dtype("lerp", "weight", self, weight);
  return rule::pointwise("lerp", self.dtype(), {&self, &end, &weight});
}

DType type_of_three(const Tensor& a, const Tensor& b, const Tensor& c) {
  return TypePromotion().add(a).add(b).add(c).result();
}
Meta addcmul_rule(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar&) {
  return rule::pointwise("addcmul", type_of_three(self, t1, t2), {&self, &t1, &t2});
}
void addcmul_kernel(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value, const Tensor& out) {
  const DType d = type_of_three(self, t1, t2);
  if (d == DType::bool_) kernel::not_implemented("addcmul", d);
  kernel::ternary(Ternary::addcmul, d, self, t1, t2, value, out);
}
Meta addcdiv_rule(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar&) {
  if (is_integral(t1.dtype()) && is_integral(t2.dtype()))
    throw UserError("addcdiv: integer division is no longer supported, found tensor1 of dtype " +
                    std::string(name(t1.dtype())) + " and tensor2 of dtype " + std::string(name(t2.dtype())) +
                    "; use self + value * trunc(tensor1 / tensor2) or convert them to a floating dtype");
  return rule::pointwise("addcdiv", type_of_three(self, t1, t2), {&self, &t1, &t2});
}
void addcdiv_kernel(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value, const Tensor& out) {
  kernel::ternary(Ternary::addcdiv, type_of_three(self, t1, t2), self, t1, t2, value, out);
}

// ---- comparing whole tensors ----------------------------------------------------------------------------------------
Tensor isclose_body(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  if (self.dtype() != other.dtype())
    throw UserError("isclose: expected other of dtype " + std::string(name(self.dtype())) + ", found " +
                    std::string(name(other.dtype())));
  if (!(rtol >= 0)) throw UserError("isclose: rtol must be greater than or equal to zero, but got " + Scalar(rtol).str());
  if (!(atol >= 0)) throw UserError("isclose: atol must be greater than or equal to zero, but got " + Scalar(atol).str());
  Tensor close = eq(self, other);
  if (equal_nan && (is_floating(self.dtype()) || is_complex(self.dtype())))
    bitwise_or_(close, bitwise_and(isnan(self), isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const Tensor compared = self.dtype() == DType::bool_ ? to(self, default_dtype()) : self;
  const Tensor reference = is_integral(self.dtype()) ? to(other, default_dtype()) : other;
  const Tensor allowed = add(abs(mul(reference, Scalar(rtol))), Scalar(atol), Scalar(1));
  const Tensor actual = abs(sub(compared, reference));
  Tensor within = isfinite(actual);
  bitwise_and_(within, le(actual, allowed));
  return bitwise_or_(close, within);
}

bool all_true(const Tensor& flags) {
  Tensor dense = flags.is_contiguous() ? flags : clone(flags, MemoryFormat::contiguous);
  const Bool* p = dense.data_as<Bool>();
  for (int64_t i = 0; i < dense.numel(); ++i)
    if (!p[i]) return false;
  return true;
}

[[noreturn]] void needs_values(const char* op) {
  throw UserError(
      ErrorKind::data_dependent,
      std::string(op) + ": the answer is data-dependent: it needs the values of tensors that have none (fake or meta)");
}

bool equal_kernel(const Tensor& self, const Tensor& other) {
  if (!(self.device() == other.device()))
    throw UserError("equal: expected both tensors on one device, found " + self.device().str() + " and " +
                    other.device().str());
  if (self.dtype() != other.dtype() || self.sizes().size() != other.sizes().size()) return false;
  for (size_t i = 0; i < self.sizes().size(); ++i)
    if (self.sizes()[i] != other.sizes()[i]) return false;
  const Tensor flags = make_tensor(self.sizes(), DType::bool_);
  kernel::binary(Binary::eq, self.dtype(), self, other, flags);
  return all_true(flags);
}

bool is_nonzero_body(const Tensor& self) {
  const SymInt n = self.sym_numel();
  if (guard(n == 0)) throw UserError("is_nonzero: Boolean value of Tensor with no values is ambiguous");
  if (!guard(n == 1))
    throw UserError("is_nonzero: Boolean value of Tensor with more than one value is ambiguous, found sizes " +
                    str(self.sym_sizes()));
  const Scalar value = item(self);
  if (value.is_symbolic())
    return guard(value.is_boolean()    ? value.sym_bool()
                 : value.is_floating() ? value.sym_float() != SymFloat(0.0)
                                       : value.sym_int() != 0);
  return value.to_bool();
}

TensorVector clamp_limits(const Gradients& g) {
  const Tensor self = g["self"], min = g["min"], max = g["max"];
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  TensorVector out(2);
  if (min.defined() && max.defined()) {
    if (g.needs("min")) {
      const Tensor in_order = min.lt(max);
      out[0] = where(self.lt(min).logical_and(in_order), g.grad(), zero);
    }
    if (g.needs("max")) {
      const Tensor above = self.gt(max);
      out[1] = where(above.logical_or(max.lt(min)), g.grad(), zero);
    }
  } else if (min.defined()) {
    out[0] = where(self.lt(min), g.grad(), zero);
  } else {
    out[1] = where(self.gt(max), g.grad(), zero);
  }
  return out;
}
Tensor clamp_self(const Gradients& g) {
  const Tensor self = g["self"], min = g["min"], max = g["max"];
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  if (!max.defined()) return where(self.ge(min), g.grad(), zero);
  if (!min.defined()) return where(self.le(max), g.grad(), zero);
  const Tensor above = self.ge(min);
  return where(above.logical_and(self.le(max)), g.grad(), zero);
}
Tensor below_min(const Gradients& g) {
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(g["self"].lt(g["min"]), g.grad(), zero);
}
Tensor above_min(const Gradients& g) {
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(g["self"].ge(g["min"]), g.grad(), zero);
}
Tensor above_max(const Gradients& g) {
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(g["self"].gt(g["max"]), g.grad(), zero);
}
Tensor below_max(const Gradients& g) {
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(g["self"].le(g["max"]), g.grad(), zero);
}

Tensor addcdiv_divisor(const Gradients& g) {
  const Tensor divisor = g["tensor2"], square = divisor.mul(divisor);
  const Tensor slope = gradient::times(g["tensor1"], g.scalar("value")).div(square);
  return g.grad().neg().mul(slope);
}

}  // namespace

void register_ternary(Library& aten);
void register_ternary(Library& aten) {
  aten.def("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
      .compute(
          [](const Tensor& self, const Tensor& mask, const Scalar& value) {
            // A value that the dtype cannot hold is refused before anything is written.
            if (!value.is_symbolic())
              dispatch(self.dtype(), [&](auto tag) { static_cast<void>(value.to<typename decltype(tag)::type>()); });
            return masked_fill_rule(self, mask);
          },
          [](const Tensor& self, const Tensor& mask, const Scalar& value, const Tensor& out) {
            kernel::masked_fill(self, mask, value, out);
          })
      .in_place("masked_fill_.Scalar")
      .out("masked_fill.Scalar_out")
      .tags(Tag::overlap_ok, Tag::dense_out, Tag::pointwise)
      .gradient("self", "mask", [](const Gradients& g) { return g.grad().masked_fill(g["mask"], Scalar(0)); });
  aten.def("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
      .compute(masked_fill_tensor_rule, masked_fill_tensor)
      .in_place("masked_fill_.Tensor")
      .out("masked_fill.Tensor_out")
      .tags(Tag::overlap_ok, Tag::dense_out, Tag::pointwise)
      .gradient("self", "mask", [](const Gradients& g) { return g.grad().masked_fill(g["mask"], Scalar(0)); })
      .gradient("value", "mask",
                [](const Gradients& g) { return gradient::where_or(g["mask"], g.grad(), Scalar(0)).sum(); });
  aten.def("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
      .cpp_name("clamp_Tensor")
      .compute(clamp_rule, clamp_kernel)
      .in_place("clamp_.Tensor")
      .out("clamp.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise, Tag::core)
      .gradient("min max", "self min max", clamp_limits)
      .gradient("self", "self min max", clamp_self);
  aten.def("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
      .compute([](const Tensor& self, const Tensor& min) { return clamp_rule(self, min, {}); },
               [](const Tensor& self, const Tensor& min, const Tensor& out) { clamp_kernel(self, min, {}, out); })
      .in_place("clamp_min_.Tensor", Tag::left_whole)
      .out("clamp_min.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("min", "self min", below_min)
      .gradient("self", "self min", above_min);
  aten.def("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
      .compute([](const Tensor& self, const Tensor& max) { return clamp_rule(self, {}, max); },
               [](const Tensor& self, const Tensor& max, const Tensor& out) { clamp_kernel(self, {}, max, out); })
      .in_place("clamp_max_.Tensor", Tag::left_whole)
      .out("clamp_max.Tensor_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("max", "self max", above_max)
      .gradient("self", "self max", below_max);
  aten.def("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
      .compute(lerp_scalar_rule,
               [](const Tensor& self, const Tensor& end, const Scalar& weight, const Tensor& out) {
                 kernel::ternary(Ternary::lerp, self.dtype(), self, end, weight, out);
               })
      .in_place("lerp_.Scalar")
      .out("lerp.Scalar_out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("end", "", [](const Gradients& g) { return gradient::times(g.grad(), g.scalar("weight")); })
      .gradient("self", "",
                [](const Gradients& g) { return gradient::times(g.grad(), Scalar(1.0 - g.scalar("weight").to_double())); });
  aten.def("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
      .compute(lerp_tensor_rule,
               [](const Tensor& self, const Tensor& end, const Tensor& weight, const Tensor& out) {
                 kernel::ternary(Ternary::lerp, self.dtype(), self, end, weight, Scalar(1), out);
               })
      .in_place("lerp_.Tensor")
      .out("lerp.Tensor_out")
      .tags(Tag::pointwise)
      .gradient("end", "weight", [](const Gradients& g) { return g.grad().mul(g["weight"]); })
      .gradient("self", "weight",
                [](const Gradients& g) { return g.grad().mul(gradient::number_minus(Scalar(1), g["weight"])); })
      .gradient("weight", "self end", [](const Gradients& g) { return g.grad().mul(g["end"].sub(g["self"])); });
  aten.def("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .compute(addcmul_rule, addcmul_kernel)
      .in_place("addcmul_")
      .out("addcmul.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); })
      .gradient("tensor1", "tensor2",
                [](const Gradients& g) { return g.grad().mul(gradient::times(g["tensor2"], g.scalar("value"))); })
      .gradient("tensor2", "tensor1",
                [](const Gradients& g) { return g.grad().mul(gradient::times(g["tensor1"], g.scalar("value"))); });
  aten.def("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .compute(addcdiv_rule, addcdiv_kernel)
      .in_place("addcdiv_")
      .out("addcdiv.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); })
      .gradient("tensor1", "tensor2",
                [](const Gradients& g) { return g.grad().mul(gradient::number_over(g.scalar("value"), g["tensor2"])); })
      .gradient("tensor2", "tensor1 tensor2", addcdiv_divisor);
  aten.def("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
      .composite(isclose_body);
  aten.def("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
      .own([](const Tensor&, const Tensor&, double, double, bool) -> bool { needs_values("allclose"); },
           [](const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
             return all_true(isclose_body(self, other, rtol, atol, equal_nan));
           })
      .tags(Tag::data_dependent)
      .no_gradient();
  aten.def("equal(Tensor self, Tensor other) -> bool")
      .own([](const Tensor&, const Tensor&) -> bool { needs_values("equal"); }, equal_kernel)
      .tags(Tag::data_dependent)
      .no_gradient();
  aten.def("is_nonzero(Tensor self) -> bool").composite(is_nonzero_body);
}

}  // namespace calque
