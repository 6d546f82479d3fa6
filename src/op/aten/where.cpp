// where. Many sources call it, so nothing else is here.
#include "kernel/cpu/elementwise/ternary.h"

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/where.h"
#include "op/gradient/formulas.h"
#include "op/stanza.h"

namespace calque {
namespace {

Meta where_rule(const Tensor& condition, const Tensor& self, const Tensor& other) {
  if (condition.dtype() == DType::uint8)
    warn("where received a uint8 condition tensor. This behavior is deprecated; use a boolean condition instead.");
  else if (condition.dtype() != DType::bool_)
    throw UserError("where: expected condition to be a boolean tensor, but got a tensor with dtype " +
                    std::string(name(condition.dtype())));
  return rule::pointwise("where", result_type(self, other), {&condition, &self, &other});
}
void where_kernel(const Tensor& condition, const Tensor& self, const Tensor& other, const Tensor& out) {
  kernel::ternary(kernel::Ternary::where, result_type(self, other), condition, self, other, Scalar(1), out);
}
Tensor number(const Tensor& condition, const Scalar& value, DType dtype) {
  return scalar_tensor(value, dtype, Layout::strided, condition.device(), std::nullopt);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
Tensor where_other(const Gradients& g) {
  const Tensor zero = gradient::number_like(Scalar(0), g.grad());
  return where(g["condition"], zero, g.grad());
}

}  // namespace

void register_where(Library& aten);
void register_where(Library& aten) {
  aten.def("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
      .compute(where_rule, where_kernel)
      .out("where.self_out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("other", "condition", where_other)
      .gradient("self", "condition",
                [](const Gradients& g) { return gradient::where_or(g["condition"], g.grad(), Scalar(0)); });
  aten.def("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
      .composite([](const Tensor& condition, const Tensor& self, const Scalar& other) {
        const DType d = result_type(self, other);
        const Tensor second = number(condition, other, d);
        return where(condition, self.to(d), second);
      });
  aten.def("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
      .composite([](const Tensor& condition, const Scalar& self, const Tensor& other) {
        const DType d = result_type(other, self);
        const Tensor first = number(condition, self, d);
        return where(condition, first, other.to(d));
      });
  aten.def("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
      .composite([](const Tensor& condition, const Scalar& self, const Scalar& other) {
        const DType d = TypePromotion().add(self).add(other).result();
        const Tensor second = number(condition, other, d);
        return where(condition, number(condition, self, d), second);
      });
}

}  // namespace calque
