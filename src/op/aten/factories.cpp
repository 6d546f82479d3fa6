// Tensors from nothing that few call: eye, scalar_tensor, the new_* forms; and fill.
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

template <int value>
void fill_new(const Tensor&, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}

Meta eye_rule(SymInt n, SymInt m, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  if (!check(n >= 0) || !check(m >= 0))
    throw UserError("eye: n and m must be greater or equal to 0, found " + n.str() + " and " + m.str());
  const SymInt sizes[] = {n, m};
  return rule::factory("eye", SymIntList(sizes, 2), dtype, layout, device, pin);
}

void need_one_value(const Tensor& value) {
  if (value.dim() != 0)
    throw UserError("fill_: fill only supports 0-dimension value tensor, found a value of sizes " + str(value.sym_sizes()));
}

}  // namespace

void register_factories(Library& aten);
void register_factories(Library& aten) {
  aten.def(
          "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_zeros")
      .compute(rule::new_from<"new_zeros">, fill_new<0>)
      .no_gradient();
  aten.def(
          "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_ones")
      .compute(rule::new_from<"new_ones">, fill_new<1>)
      .no_gradient();
  aten.def(
          "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_full")
      .compute([](const Tensor& self, SymIntList size, const Scalar&, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return rule::new_from<"new_full">(self, size, d, l, v, p); },
               [](const Tensor&, SymIntList, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::fill(out, value); })
      .no_gradient();
  aten.def(
          "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .compute([](const Scalar&, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return rule::factory("scalar_tensor", {}, d, l, v, p); },
               [](const Scalar& s, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::fill(out, s); })
      .tags(Tag::core);
  aten.def(
          "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
          "Tensor")
      .compute([](SymInt n, OptDType d, OptLayout l, OptDevice v, OptBool p) { return eye_rule(n, n, d, l, v, p); },
               [](SymInt, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::eye(out); });
  aten.def(
          "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .compute(eye_rule,
               [](SymInt, SymInt, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::eye(out); });
  aten.def("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)")
      .mutate([](const Tensor&, const Scalar&) {},
              [](const Tensor& self, const Scalar& value) { kernel::fill(self, value); })
      .tags(Tag::overlap_ok)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
      .mutate([](const Tensor&, const Tensor& value) { need_one_value(value); },
              [](const Tensor& self, const Tensor& value) {
                need_one_value(value);
                kernel::copy(value, self);
              })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); })
      .gradient("value", "", [](const Gradients& g) { return g.grad().sum(); });
  aten.def("fill.Scalar(Tensor self, Scalar value) -> Tensor")
      .compute([](const Tensor& self, const Scalar&) { return rule::like("fill", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, const Scalar& value, const Tensor& out) { kernel::fill(out, value); })
      .out("fill.Scalar_out", Tag::left_whole)
      .tags(Tag::dense_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("fill.Tensor(Tensor self, Tensor value) -> Tensor")
      .compute(
          [](const Tensor& self, const Tensor& value) {
            need_one_value(value);
            return rule::like("fill", self, {}, {}, {}, {}, {});
          },
          [](const Tensor&, const Tensor& value, const Tensor& out) { kernel::copy(value, out); })
      .out("fill.Tensor_out", Tag::left_whole)
      .tags(Tag::dense_out)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); })
      .gradient("value", "", [](const Gradients& g) { return g.grad().sum(); });
  aten.def("zero_(Tensor(a!) self) -> Tensor(a!)")
      .mutate([](const Tensor&) {}, [](const Tensor& self) { kernel::fill(self, 0); })
      .tags(Tag::overlap_ok)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("zero(Tensor self) -> Tensor")
      .compute([](const Tensor& self) { return rule::like("zero", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, const Tensor& out) { kernel::fill(out, 0); })
      .out("zero.out")
      .tags(Tag::dense_out);
}

}  // namespace calque
