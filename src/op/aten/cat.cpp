// cat and its other names. A quarter of all sources call it, so nothing else is here.
#include "calque/op/aten/cat.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/gradient.h"
#include "kernel/cpu/shaping/joining.h"
#include "op/rule/joining.h"
#include "op/stanza.h"

namespace calque {
namespace {

Meta cat_rule(TensorList tensors, int64_t dim) { return rule::cat("cat", tensors, dim); }
void cat_kernel(TensorList tensors, int64_t dim, const Tensor& out) {
  kernel::cat(pointers(tensors), rule::cat_dim("cat", tensors, dim), out);
}

TensorVector cat_gradient(const Gradients& g) {
  TensorVector out;
  const int64_t dim = wrap_dim(g.integer("dim"), g.grad().dim(), "cat");
  SymInt start = 0;
  for (const Meta& m : g.metas("tensors")) {
    const bool is_skipped = m.sizes.size() == 1 && guard_or(m.sizes[0] == 0, false);
    out.push_back(is_skipped ? zeros({0}, g.grad().dtype(), Layout::strided, g.grad().device())
                             : g.grad().narrow(dim, start, m.sizes[static_cast<size_t>(dim)]));
    if (!is_skipped) start = start + m.sizes[static_cast<size_t>(dim)];
  }
  return out;
}

}  // namespace

void register_cat(Library& aten);
void register_cat(Library& aten) {
  aten.def("cat(Tensor[] tensors, int dim=0) -> Tensor")
      .tags(Tag::autocast_promote)
      .compute(cat_rule, cat_kernel)
      .out("cat.out")
      .tags(Tag::unshared_out, Tag::cast_out, Tag::strided_out, Tag::core)
      .gradient("tensors", "", cat_gradient);
  aten.def("concat(Tensor[] tensors, int dim=0) -> Tensor")
      .composite([](TensorList tensors, int64_t dim) { return cat(tensors, dim); })
      .out("concat.out")
      .tags(Tag::cast_out);
  aten.def("concatenate(Tensor[] tensors, int dim=0) -> Tensor")
      .composite([](TensorList tensors, int64_t dim) { return cat(tensors, dim); })
      .out("concatenate.out")
      .tags(Tag::cast_out);
}

}  // namespace calque
