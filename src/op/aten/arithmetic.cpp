// Arithmetic on two operands: add, sub, mul, div and kin, with their Scalar overloads.
#include "kernel/cpu/binary.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Binary;

// alpha must not be of a higher kind than what is computed.
void check_alpha(const char* op, DType common, const Scalar& alpha) {
  if (alpha.is_boolean() && common != DType::bool_) throw UserError(std::string(op) + ": Boolean alpha only supported for Boolean results, found dtype " + std::string(name(common)));
  if (alpha.is_floating() && is_integral(common))
    throw UserError(std::string(op) + ": For integral input tensors, argument alpha must not be a floating point number, found " + alpha.str());
}

Meta add_rule(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const Meta m = rule::binary("add", self, other);
  check_alpha("add", m.dtype, alpha);
  return m;
}
void add_kernel(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& out) {
  kernel::add_scaled(result_type(self, other), self, other, alpha, false, out);
}

}  // namespace

void register_arithmetic(Library& aten);
void register_arithmetic(Library& aten) {
  aten.def("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .compute(add_rule, add_kernel)
      .in_place("add_.Tensor")
      .out("add.out")
      .tags(Tag::pointwise, Tag::core);
  aten.def("mul.Tensor(Tensor self, Tensor other) -> Tensor")
      .compute([](const Tensor& a, const Tensor& b) { return rule::binary("mul", a, b); },
               [](const Tensor& a, const Tensor& b, const Tensor& out) { kernel::binary(Binary::mul, result_type(a, b), a, b, out); })
      .in_place("mul_.Tensor")
      .out("mul.out")
      .tags(Tag::pointwise, Tag::core);
}

}  // namespace calque
