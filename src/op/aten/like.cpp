// Tensors of one number with the sizes of another: zeros_like, ones_like, full_like.
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

template <int value>
void fill_like(const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
  kernel::fill(out, value);
}

}  // namespace

void register_like(Library& aten);
void register_like(Library& aten) {
  aten.def(
          "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(rule::like_of<"zeros_like">, fill_like<0>)
      .no_gradient();
  aten.def(
          "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(rule::like_of<"ones_like">, fill_like<1>)
      .no_gradient();
  aten.def(
          "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, const Scalar&, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("full_like", self, d, l, v, p, f); },
               [](const Tensor&, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { kernel::fill(out, value); })
      .tags(Tag::core)
      .no_gradient();
}

}  // namespace calque
