// Tensors of one number by their sizes: zeros, ones, full. Half of all sources call one of them, so nothing else is here.
#include "calque/op/aten/copying.h"
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

template <int value>
void fill_sizes(SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}
// An out= factory gives its out argument the sizes asked for and fills it.
Tensor resized(const Tensor& out, SymIntList size) { return resize_(out, size); }

// full() of an integer or bool without a dtype keeps the number's kind.
DType full_dtype(const Scalar& value, OptDType dtype) {
  if (dtype) return *dtype;
  return value.is_boolean() ? DType::bool_ : value.is_integral(false) ? DType::int64 : value.dtype();
}
Meta full_rule(SymIntList size, const Scalar& value, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return rule::factory("full", size, full_dtype(value, dtype), layout, device, pin);
}
void full_kernel(SymIntList, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}

}  // namespace

void register_zeros(Library& aten);
void register_zeros(Library& aten) {
  aten.def(
          "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(rule::by_sizes<"zeros">, fill_sizes<0>);
  aten.def(
          "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(rule::by_sizes<"ones">, fill_sizes<1>);
  aten.def(
          "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None) -> Tensor")
      .compute(full_rule, full_kernel)
      .tags(Tag::core);
  aten.def("zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite([](SymIntList size, const Tensor& out) { return resized(out, size).zero_(); });
  aten.def("ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite([](SymIntList size, const Tensor& out) { return resized(out, size).fill_(Scalar(1)); });
  aten.def("full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, const Scalar& value, const Tensor& out) { return resized(out, size).fill_(value); });
}

}  // namespace calque
