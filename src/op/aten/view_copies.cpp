// What copies come from views: the *_copy operators (a view's values in fresh contiguous memory) and the *_scatter
// operators (a copy of self in which a view is overwritten).
#include "calque/op/aten/view_copies.h"
#include "calque/op/aten/view_gradients.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/formulas.h"
#include "op/gradient/views.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::geometry;
using OptSymInt = std::optional<SymInt>;

// ---- views by name, for the adapters below --------------------------------------------------------------------------
View permuted(const Tensor& self, IntList dims) { return rule::permute("permute_copy", geometry(self), dims); }
View transposed(const Tensor& self, int64_t a, int64_t b) { return rule::transpose("transpose_copy", geometry(self), a, b); }
View t_of(const Tensor& self) {
  if (self.dim() > 2)
    throw UserError("t_copy: expects a tensor with <= 2 dimensions, but self is " + std::to_string(self.dim()) + "D");
  return rule::transpose("t_copy", geometry(self), 0, self.dim() < 2 ? 0 : 1);
}
View squeezed(const Tensor& self) { return rule::squeeze(geometry(self)); }
View squeezed_dim(const Tensor& self, int64_t dim) { return rule::squeeze("squeeze_copy", geometry(self), {dim}); }
View squeezed_dims(const Tensor& self, IntList dims) { return rule::squeeze("squeeze_copy", geometry(self), dims); }
View unsqueezed(const Tensor& self, int64_t dim) { return rule::unsqueeze("unsqueeze_copy", geometry(self), dim); }
View expanded(const Tensor& self, SymIntList size, bool) { return rule::expand("expand_copy", geometry(self), size); }
View sliced(const Tensor& self, int64_t dim, OptSymInt start, OptSymInt end, SymInt step) {
  return rule::slice("slice_copy", geometry(self), dim, start, end, step);
}
View selected(const Tensor& self, int64_t dim, SymInt index) {
  return rule::select("select_copy", geometry(self), dim, index);
}
View strided(const Tensor& self, SymIntList size, SymIntList stride, OptSymInt offset) {
  return rule::as_strided("as_strided_copy", self, size, stride, offset);
}
View diagonal_of(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return rule::diagonal("diagonal_copy", geometry(self), offset, dim1, dim2);
}
View unfolded(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return rule::unfold("unfold_copy", geometry(self), dimension, size, step);
}
View narrowed(const Tensor& self, int64_t dim, SymInt start, SymInt length) {
  if (self.dim() == 0) throw UserError("narrow_copy: cannot be applied to a 0-dim tensor");
  if (!check(length >= 0)) throw UserError("narrow_copy: length must be non-negative, found " + length.str());
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), "narrow_copy"));
  const SymInt size = self.sym_sizes()[d];
  if (guard(start < 0)) start += size;
  if (!check(sym_and(start >= 0, start + length <= size)))
    throw UserError("narrow_copy: start (" + start.str() + ") + length (" + length.str() + ") exceeds dimension size (" +
                    size.str() + ")");
  return rule::narrow(geometry(self), d, start, length);
}
View same_geometry(const Tensor& self) { return geometry(self); }

// Rule and kernel of the copy of a view.
template <auto view_of>
struct Copied;
template <class... A, View (*view_of)(const Tensor&, A...)>
struct Copied<view_of> {
  static Meta rule(const Tensor& self, A... args) { return rule::contiguous_like(self, view_of(self, args...).sizes); }
  static void kernel(const Tensor& self, A... args, const Tensor& out) {
    kernel::copy(rule::make(self, view_of(self, args...)), out);
  }
};

Meta view_copy_rule(const Tensor& self, SymIntList size) {
  return rule::contiguous_like(self, rule::infer_size("view_copy", size, self.sym_numel()));
}
void view_copy_kernel(const Tensor& self, SymIntList, const Tensor& out) {
  // In self's shape, through contiguous memory where out is not.
  const Tensor dense = out.is_contiguous() ? out : Tensor(make_tensor(out.sizes(), out.dtype()));
  kernel::copy(self, make_view(dense, self.impl().sizes, contiguous_strides(self.sym_sizes()), dense.storage_offset()));
  if (!dense.is_same(out)) kernel::copy(dense, out);
}

// ---- scatters -------------------------------------------------------------------------------------------------------
// A clone that keeps even the gaps between elements, so that the same view of it is the same place.
Meta scatter_meta(const Tensor& self) {
  return {self.impl().sizes, has_internal_overlap(self) ? rule::preserved_strides(self) : self.impl().strides, self.dtype(),
          self.device(), false};
}
void check_source(const char* op, const Tensor& src, const View& place, bool asks = true) {
  const SymIntList own = src.sym_sizes();
  bool fits = own.size() == place.sizes.size();
  for (size_t d = 0; d < own.size() && fits; ++d) {
    const bool unknown = own[d].is_symbolic() || place.sizes[d].is_symbolic();
    fits = unknown && !asks ? true : check(own[d] == place.sizes[d]);
  }
  if (!fits)
    throw UserError(std::string(op) + ": expected src to have a size equal to the slice of self. src size = " +
                    str(src.sym_sizes()) + ", slice size = " + str(SymIntList(place.sizes)));
}
void overwrite(const Tensor& self, const Tensor& src, const Tensor& out, const View& place) {
  kernel::copy(self, out);
  kernel::copy(src, rule::make(out, place));
}

Meta select_scatter_rule(const Tensor& self, const Tensor& src, int64_t dim, SymInt index) {
  // No guards on symbolic sizes: ATen's fake execution makes none.
  View place = geometry(self);
  if (self.is_symbolic() && self.dim() > 0)
    place.sizes.erase(place.sizes.begin() + wrap_dim(dim, self.dim(), "select_scatter"));
  else
    place = rule::select("select_scatter", place, dim, index);
  check_source("select_scatter", src, place, false);
  return scatter_meta(self);
}
Meta slice_scatter_rule(const Tensor& self, const Tensor& src, int64_t dim, OptSymInt start, OptSymInt end, SymInt step) {
  check_source("slice_scatter", src, rule::slice("slice_scatter", geometry(self), dim, start, end, step));
  return scatter_meta(self);
}
Meta diagonal_scatter_rule(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  check_source("diagonal_scatter", src, rule::diagonal("diagonal_scatter", geometry(self), offset, dim1, dim2), false);
  return scatter_meta(self);
}

// The place may reach beyond self within its storage: the whole storage is copied.
Tensor as_strided_scatter_rule(const Tensor& self, const Tensor& src, SymIntList size, SymIntList stride, OptSymInt offset) {
  const Tensor out = make_tensor(scatter_meta(self), true);
  check_source("as_strided_scatter", src,
               rule::as_strided("as_strided_scatter", has_internal_overlap(self) ? out : self, size, stride, offset));
  return out;
}
Tensor as_strided_scatter_kernel(const Tensor& self, const Tensor& src, SymIntList size, SymIntList stride,
                                 OptSymInt offset) {
  Tensor out;
  if (has_internal_overlap(self)) {
    out = make_tensor(scatter_meta(self));
    kernel::copy(self, out);
  } else {
    const int64_t count = static_cast<int64_t>(self.storage()->nbytes()) / self.element_size();
    const Tensor whole = make_tensor({count}, self.dtype());
    kernel::copy(make_view(self, {count}, {1}, 0), whole);
    out = rule::make(whole, geometry(self));
  }
  const View place = rule::as_strided("as_strided_scatter", out, size, stride, offset);
  check_source("as_strided_scatter", src, place);
  kernel::copy(src, rule::make(out, place));
  return out;
}

// ---- gradients of scatters ------------------------------------------------------------------------------------------
// What was overwritten has no gradient.
Tensor of_overwritten_slice(const Gradients& g) {
  const auto bound = [&](const char* name) { return g.argument(name).is_none() ? OptSymInt() : OptSymInt(g.sym_int(name)); };
  return slice_scatter(g.grad(), gradient::zeros_of(g, "src"), g.integer("dim"), bound("start"), bound("end"),
                       g.sym_int("step"));
}
Tensor of_written_slice(const Gradients& g) {
  const auto bound = [&](const char* name) { return g.argument(name).is_none() ? OptSymInt() : OptSymInt(g.sym_int(name)); };
  return g.grad().slice(g.integer("dim"), bound("start"), bound("end"), g.sym_int("step"));
}
OptSymInt offset_said(const Gradients& g) {
  return g.argument("storage_offset").is_none() ? OptSymInt() : OptSymInt(g.sym_int("storage_offset"));
}
// As PyTorch has it: what lies in the place is kept, the rest is zeros.
Tensor of_overwritten_memory(const Gradients& g) {
  const SymInts size = g.sym_ints("size"), stride = g.sym_ints("stride");
  const Meta& self = g.meta("self");
  const Tensor grad = g.grad().contiguous();
  const Tensor place = grad.as_strided(size, stride, offset_said(g));
  const Tensor whole = grad.new_zeros(self.sizes);
  const Tensor out = whole.as_strided(self.sizes, self.strides);
  whole.as_strided(size, stride, offset_said(g)).copy_(place);
  return out;
}

}  // namespace

void register_view_copies(Library& aten);
void register_view_copies(Library& aten) {
  aten.def("view_copy(Tensor self, SymInt[] size) -> Tensor")
      .compute(view_copy_rule, view_copy_kernel)
      .out("view_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_view);
  aten.def("_reshape_copy(Tensor self, SymInt[] size) -> Tensor")
      .compute(view_copy_rule, view_copy_kernel)
      .tags(Tag::strided_out)
      .gradient("self", "", gradient::of_view);
  aten.def("permute_copy(Tensor self, int[] dims) -> Tensor")
      .compute(Copied<permuted>::rule, Copied<permuted>::kernel)
      .out("permute_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_permute);
  aten.def("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
      .compute(Copied<transposed>::rule, Copied<transposed>::kernel)
      .out("transpose_copy.int_out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_transpose);
  aten.def("t_copy(Tensor self) -> Tensor")
      .compute(Copied<t_of>::rule, Copied<t_of>::kernel)
      .out("t_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_t);
  aten.def("squeeze_copy(Tensor self) -> Tensor")
      .compute(Copied<squeezed>::rule, Copied<squeezed>::kernel)
      .out("squeeze_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_squeeze);
  aten.def("squeeze_copy.dim(Tensor self, int dim) -> Tensor")
      .compute(Copied<squeezed_dim>::rule, Copied<squeezed_dim>::kernel)
      .out("squeeze_copy.dim_out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_squeeze_dim);
  aten.def("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor")
      .compute(Copied<squeezed_dims>::rule, Copied<squeezed_dims>::kernel)
      .out("squeeze_copy.dims_out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_squeeze_dims);
  aten.def("unsqueeze_copy(Tensor self, int dim) -> Tensor")
      .compute(Copied<unsqueezed>::rule, Copied<unsqueezed>::kernel)
      .out("unsqueeze_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_unsqueeze);
  aten.def("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor")
      .compute(Copied<expanded>::rule, Copied<expanded>::kernel)
      .out("expand_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_same);
  aten.def("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .compute(Copied<sliced>::rule, Copied<sliced>::kernel)
      .out("slice_copy.Tensor_out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_slice);
  aten.def("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor")
      .compute(Copied<selected>::rule, Copied<selected>::kernel)
      .out("select_copy.int_out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_select);
  aten.def("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
      .compute(Copied<strided>::rule, Copied<strided>::kernel)
      .out("as_strided_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_as_strided);
  aten.def("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .compute(Copied<diagonal_of>::rule, Copied<diagonal_of>::kernel)
      .out("diagonal_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_diagonal);
  aten.def("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
      .compute(Copied<unfolded>::rule, Copied<unfolded>::kernel)
      .out("unfold_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_unfold);
  aten.def("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
      .compute(Copied<narrowed>::rule, Copied<narrowed>::kernel)
      .out("narrow_copy.out")
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        const SymInt start = g.sym_int("start");
        return slice_backward(g.grad(), g.sizes("self"), g.integer("dim"), start, start + g.sym_int("length"), 1);
      });
  aten.def("alias_copy(Tensor self) -> Tensor")
      .compute(Copied<same_geometry>::rule, Copied<same_geometry>::kernel)
      .out("alias_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", gradient::of_same);
  aten.def("detach_copy(Tensor self) -> Tensor")
      .compute(Copied<same_geometry>::rule, Copied<same_geometry>::kernel)
      .out("detach_copy.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .no_gradient();

  aten.def("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
      .compute(select_scatter_rule,
               [](const Tensor& self, const Tensor& src, int64_t dim, SymInt index, const Tensor& out) {
                 overwrite(self, src, out, rule::select("select_scatter", geometry(out), dim, index));
               })
      .out("select_scatter.out")
      .tags(Tag::any_device, Tag::dense_out, Tag::strided_out, Tag::core)
      .gradient("self", "",
                [](const Gradients& g) {
                  return select_scatter(g.grad(), gradient::zeros_of(g, "src"), g.integer("dim"), g.sym_int("index"));
                })
      .gradient("src", "", [](const Gradients& g) { return g.grad().select(g.integer("dim"), g.sym_int("index")); });
  aten.def(
          "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .compute(slice_scatter_rule,
               [](const Tensor& self, const Tensor& src, int64_t dim, OptSymInt start, OptSymInt end, SymInt step,
                  const Tensor& out) {
                 overwrite(self, src, out, rule::slice("slice_scatter", geometry(out), dim, start, end, step));
               })
      .out("slice_scatter.out")
      .tags(Tag::any_device, Tag::dense_out, Tag::strided_out, Tag::core)
      .gradient("self", "", of_overwritten_slice)
      .gradient("src", "", of_written_slice);
  aten.def("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .compute(diagonal_scatter_rule,
               [](const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2, const Tensor& out) {
                 overwrite(self, src, out, rule::diagonal("diagonal_scatter", geometry(out), offset, dim1, dim2));
               })
      .out("diagonal_scatter.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "",
                [](const Gradients& g) {
                  return diagonal_scatter(g.grad(), gradient::zeros_of(g, "src"), g.integer("offset"), g.integer("dim1"),
                                          g.integer("dim2"));
                })
      .gradient("src", "", [](const Gradients& g) {
        return g.grad().diagonal(g.integer("offset"), g.integer("dim1"), g.integer("dim2"));
      });
  aten.def(
          "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
          "Tensor")
      .own(as_strided_scatter_rule, as_strided_scatter_kernel)
      .out("as_strided_scatter.out")
      .tags(Tag::dense_out, Tag::allocates_own)
      .gradient("self", "", of_overwritten_memory)
      .gradient("src", "", [](const Gradients& g) {
        return g.grad().contiguous().as_strided(g.sym_ints("size"), g.sym_ints("stride"), offset_said(g));
      });
}

}  // namespace calque
