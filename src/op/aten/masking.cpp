// Operators that follow a mask: nonzero and its kin, masked_select, masked_scatter. Sizes that depend on values become
// unbacked symbols under fake execution.
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions_backward.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/masked.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

Tensor nonzero_fake(const Tensor& self) {
  const SymInt n = rule::unbacked_size("nonzero", TensorOwner::Unknown::nonzero, {&self});
  rule::limit_by_numel(n, self);
  return make_tensor(Meta{{n, self.dim()}, {1, n}, DType::int64, self.device()}, true);
}

Meta nonzero_static_rule(const Tensor& self, SymInt size, int64_t) {
  if (!check(size >= 0)) throw UserError("nonzero_static: 'size' must be non-negative, found " + size.str());
  return rule::contiguous({size, self.dim()}, DType::int64, self.device());
}
void nonzero_static_kernel(const Tensor& self, SymInt, int64_t fill_value, const Tensor& out) {
  kernel::nonzero(kernel::as_mask(self, self.sizes()), out, fill_value);
}

std::vector<Tensor> coordinates(const Tensor& self) {
  return unbind(nonzero(self.dim() == 0 ? unsqueeze(self, 0) : self), 1);
}

SymInts masked_sizes(const char* op, const Tensor& self, const Tensor& mask) {
  return broadcast_sizes(self.sym_sizes(), mask.sym_sizes(), op);
}

void check_bool(const char* op, const Tensor& mask) {
  if (mask.dtype() != DType::bool_)
    throw UserError(std::string(op) + ": expected a bool mask, found " + std::string(name(mask.dtype())));
}
Tensor masked_select_fake(const Tensor& self, const Tensor& mask) {
  check_bool("masked_select", mask);
  masked_sizes("masked_select", self, mask);
  // Not the count of the mask alone: it may be broadcast.
  const SymInt n = rule::fresh_size("masked_select", {&mask, &self});
  rule::limit_by_numel(n, self);
  return make_tensor(Meta{{n}, {1}, self.dtype(), self.device()}, true);
}
Tensor masked_select_kernel(const Tensor& self, const Tensor& mask) {
  check_bool("masked_select", mask);
  const auto sizes = rule::plain(masked_sizes("masked_select", self, mask));
  const Tensor where = kernel::as_mask(mask, sizes);
  Tensor out = make_tensor({kernel::count_true(where)}, self.dtype());
  kernel::masked_select(self, where, out);
  return out;
}

// The broadcast sizes where symbolic ones are taken to agree: a mask that does not is refused when there are values.
SymInts assumed_sizes(const char* op, const Tensor& self, const Tensor& mask) {
  const SymIntList own = self.sym_sizes();
  const SymIntList other = mask.sym_sizes();
  if (!self.is_symbolic() && !mask.is_symbolic()) return masked_sizes(op, self, mask);
  SymInts sizes(std::max(own.size(), other.size()));
  for (size_t i = 1; i <= sizes.size(); ++i) {
    const SymInt a = i <= own.size() ? own[own.size() - i] : SymInt(1);
    const SymInt b = i <= other.size() ? other[other.size() - i] : SymInt(1);
    const bool stretched = identical(a, 1);
    if (!stretched && !identical(b, 1) && rule::known_different(a, b))
      throw UserError(std::string(op) + ": a mask of sizes " + str(other) + " does not broadcast with self's " + str(own));
    sizes[sizes.size() - i] = stretched ? b : a;
  }
  return sizes;
}
Meta masked_scatter_rule(const Tensor& self, const Tensor& mask, const Tensor& source) {
  if (self.dtype() != source.dtype())
    throw UserError("masked_scatter: expected self and source to have same dtypes but got " +
                    std::string(name(self.dtype())) + " and " + std::string(name(source.dtype())));
  check_bool("masked_scatter", mask);
  return rule::contiguous(assumed_sizes("masked_scatter", self, mask), self.dtype(), self.device());
}
void masked_scatter_kernel(const Tensor& self, const Tensor& mask, const Tensor& source, const Tensor& out) {
  const bool in_place = out.is_same(self);
  if (in_place) {
    rule::check_no_overlap("masked_scatter_", out, mask);
    rule::check_no_overlap("masked_scatter_", out, source);
  }
  const Tensor to = out.is_contiguous() ? out : Tensor(make_tensor(out.sizes(), out.dtype()));
  if (!(in_place && out.is_contiguous())) kernel::copy(self, to);
  kernel::masked_scatter(kernel::as_mask(mask, out.sizes()), source, to);
  if (!to.is_same(out)) kernel::copy(to, out);
}

}  // namespace

void register_masking(Library& aten);
void register_masking(Library& aten) {
  aten.def("nonzero(Tensor self) -> Tensor")
      .own(nonzero_fake, [](const Tensor& self) -> Tensor { return kernel::nonzero(self); })
      .out("nonzero.out")
      .tags(Tag::core, Tag::data_dependent, Tag::allocates_own)
      .no_gradient();
  aten.def("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
      .compute(nonzero_static_rule, nonzero_static_kernel)
      .out("nonzero_static.out")
      .tags(Tag::strided_out)
      .no_gradient();
  aten.def("argwhere(Tensor self) -> Tensor").composite([](const Tensor& self) { return nonzero(self); });
  aten.def("nonzero_numpy(Tensor self) -> Tensor[]").composite(coordinates);
  aten.def("where(Tensor condition) -> Tensor[]").composite(coordinates);
  aten.def("masked_select(Tensor self, Tensor mask) -> Tensor")
      .own(masked_select_fake, masked_select_kernel)
      .out("masked_select.out")
      .tags(Tag::unshared_out, Tag::data_dependent, Tag::allocates_own)
      .gradient("self", "self mask",
                [](const Gradients& g) { return masked_select_backward(g.grad(), g["self"], g["mask"]); });
  aten.def("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
      .compute(masked_scatter_rule, masked_scatter_kernel)
      .in_place("masked_scatter_")
      .out("masked_scatter.out")
      .tags(Tag::dense_out, Tag::core, Tag::self_in_out, Tag::strided_out)
      .gradient("self", "mask", [](const Gradients& g) { return g.grad().masked_fill(g["mask"], Scalar(0)); })
      .gradient("source", "mask",
                [](const Gradients& g) { return masked_scatter_backward(g.grad(), g["mask"], g.sizes("source")); });
}

}  // namespace calque
