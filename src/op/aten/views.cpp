// Views of one tensor: another shape, another order, a part. Rules say sizes, strides and offset; no data moves.
#include "calque/op/aten/views.h"
#include "calque/op/aten/copying.h"
#include "op/gradient/views.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::geometry;

// A view where the strides allow one, a contiguous copy otherwise.
Tensor reshape_body(const Tensor& self, SymIntList shape) {
  const SymInts sizes = rule::infer_size("reshape", shape, self.sym_numel());
  if (self.is_contiguous() || rule::view_strides(self, sizes))
    return self.view(self.is_contiguous() ? shape : SymIntList(sizes));
  return _unsafe_view(self.clone(MemoryFormat::contiguous), sizes);
}

Tensor unsafe_view(const Tensor& self, SymIntList size) { return rule::make(self, rule::view("_unsafe_view", self, size)); }

Tensor flatten_body(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t start = wrap_dim(start_dim, self.dim(), "flatten");
  const int64_t end = wrap_dim(end_dim, self.dim(), "flatten");
  if (start > end)
    throw UserError("flatten: start_dim cannot come after end_dim, found start_dim " + std::to_string(start_dim) +
                    " and end_dim " + std::to_string(end_dim));
  if (self.dim() == 0) return self.reshape({1});
  if (start == end) return self;
  const SymIntList sizes = self.sym_sizes();
  SymInts shape(sizes.begin(), sizes.begin() + start);
  shape.push_back(product({sizes.data() + start, static_cast<size_t>(end - start + 1)}));
  for (size_t d = static_cast<size_t>(end) + 1; d < sizes.size(); ++d) shape.push_back(sizes[d]);
  return self.reshape(shape);
}

Tensor unflatten_body(const Tensor& self, int64_t dim, SymIntList sizes) {
  if (sizes.empty()) throw UserError("unflatten: sizes must be non-empty");
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), "unflatten"));
  const SymIntList own = self.sym_sizes();
  const SymInt length = own.empty() ? SymInt(1) : own[d];
  SymInts parts;
  try {
    parts = rule::infer_size("unflatten", sizes, length);
  } catch (const UserError&) {
    throw UserError("unflatten: Provided sizes " + str(sizes) + " don't multiply up to the size of dim " +
                    std::to_string(d) + " (" + length.str() + ") in the input tensor");
  }
  SymInts shape;
  for (size_t i = 0; i < own.size(); ++i) {
    if (i == d)
      for (const SymInt s : parts) shape.push_back(s);
    else
      shape.push_back(own[i]);
  }
  return self.view(own.empty() ? parts : shape);
}

Tensor narrow_body(const Tensor& self, int64_t dim, SymInt start, SymInt length) {
  if (self.dim() == 0) throw UserError("narrow: cannot be applied to a 0-dim tensor");
  if (!check(length >= 0)) throw UserError("narrow: length must be non-negative, found " + length.str());
  const SymInt size = self.sym_size(dim);
  if (!check(start <= size) || !check(start >= -size))
    throw UserError("narrow: start out of range (expected to be in range of [" + (-size).str() + ", " + size.str() +
                    "], but got " + start.str() + ")");
  if (guard(start < 0)) start += size;
  if (!check(start <= size - length))
    throw UserError("narrow: start (" + start.str() + ") + length (" + length.str() + ") exceeds dimension size (" +
                    size.str() + ")");
  return self.slice(dim, start, start + length, 1);
}

Tensor narrow_by_tensor(const Tensor& self, int64_t dim, const Tensor& start, SymInt length) {
  if (start.dim() != 0 || !is_integral(start.dtype(), false))
    throw UserError("narrow: start must be a 0-dim integral tensor, found " + std::to_string(start.dim()) +
                    " dimensions of dtype " + std::string(name(start.dtype())));
  return self.narrow(dim, start.item().sym_int(), length);
}

Tensor movedim_body(const Tensor& self, IntList source, IntList destination) {
  if (source.size() != destination.size())
    throw UserError("movedim: Invalid source or destination dims: source (" + str(source) + ") dims and destination (" +
                    str(destination) + ") dims should contain the same number of dimensions");
  const int64_t n = self.dim();
  const auto wrap = [&](IntList dims, const char* which) {
    SmallVector<int64_t, 8> out;
    for (const int64_t d : dims) {
      out.push_back(wrap_dim(d, n, "movedim"));
      if (std::count(out.begin(), out.end(), out.back()) > 1)
        throw UserError(std::string("movedim: repeated dim in `") + which + "` (" + str(dims) + ")");
    }
    return out;
  };
  const auto from = wrap(source, "source");
  const auto to = wrap(destination, "destination");
  if (n == 0) return self.alias();
  SmallVector<int64_t, 8> order(static_cast<size_t>(n), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (std::count(from.begin(), from.end(), next)) ++next;
    d = next++;
  }
  return self.permute(order);
}
Tensor movedim_one(const Tensor& self, int64_t source, int64_t destination) {
  return self.movedim(IntList{source}, IntList{destination});
}

View t_rule(const char* op, const Tensor& self) {
  if (self.dim() > 2)
    throw UserError(std::string(op) + ": expects a tensor with <= 2 dimensions, but self is " + std::to_string(self.dim()) +
                    "D");
  return rule::transpose(op, geometry(self), 0, self.dim() < 2 ? 0 : 1);
}

Tensor last_two(const char* op, const Tensor& self) {
  if (self.dim() == 0) return self;
  if (self.dim() < 2)
    throw UserError(std::string(op) + ": only supported on matrices or batches of matrices, got a " +
                    std::to_string(self.dim()) + "-D tensor");
  return self.transpose(-2, -1);
}
Tensor conjugate(const Tensor& self) { return is_complex(self.dtype()) ? call("aten::conj", {self}).to_tensor() : self; }

Tensor numpy_t(const Tensor& self) {
  SmallVector<int64_t, 8> order;
  for (int64_t d = self.dim(); d-- > 0;) order.push_back(d);
  return self.permute(order);
}
Tensor matrix_h(const Tensor& self) {
  if (self.dim() != 0 && self.dim() != 2)
    throw UserError("matrix_H: only supported on 2-D tensors (matrices), got a " + std::to_string(self.dim()) + "-D tensor");
  return self.dim() == 0 ? conjugate(self) : conjugate(self.transpose(0, 1));
}

}  // namespace

void register_views(Library& aten);
void register_views(Library& aten) {
  aten.def("view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
      .tags(Tag::repeatable)
      .python("torch.Tensor.view")
      .view([](const Tensor& self, SymIntList size) { return rule::view("view", self, size); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_view);
  aten.def("_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
      .own(unsafe_view, unsafe_view)
      .out("_unsafe_view.out")
      .tags(Tag::dense_out, Tag::may_alias)
      .gradient("self", "", gradient::of_view);
  aten.def("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
      .view([](const Tensor& self, SymIntList size, SymIntList stride) {
        return View{SymInts(size.begin(), size.end()), SymInts(stride.begin(), stride.end()), self.sym_storage_offset()};
      })
      .gradient("self", "", gradient::of_view);
  aten.def("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)").composite(reshape_body).tags(Tag::may_alias);
  aten.def("view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .python("torch.Tensor.view_as")
      .composite([](const Tensor& self, const Tensor& other) { return self.view(other.sym_sizes()); });
  aten.def("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .python("torch.Tensor.reshape_as")
      .composite([](const Tensor& self, const Tensor& other) { return self.reshape(other.sym_sizes()); })
      .tags(Tag::may_alias);
  aten.def("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
      .composite(flatten_body)
      .tags(Tag::may_alias);
  aten.def("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)").composite(unflatten_body);
  aten.def("ravel(Tensor(a) self) -> Tensor(a)")
      .composite([](const Tensor& self) { return self.contiguous().view({-1}); })
      .tags(Tag::may_alias);

  aten.def("permute(Tensor(a) self, int[] dims) -> Tensor(a)")
      .view([](const Tensor& self, IntList dims) { return rule::permute("permute", geometry(self), dims); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_permute);
  aten.def("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
      .view([](const Tensor& self, int64_t dim0, int64_t dim1) {
        return rule::transpose("transpose", geometry(self), dim0, dim1);
      })
      .gradient("self", "", gradient::of_transpose);
  aten.def("t(Tensor(a) self) -> Tensor(a)")
      .view([](const Tensor& self) { return t_rule("t", self); })
      .gradient("self", "", gradient::of_t);
  aten.def("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
      .composite([](const Tensor& self, int64_t axis0, int64_t axis1) { return self.transpose(axis0, axis1); });
  aten.def("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
      .composite([](const Tensor& self, int64_t dim0, int64_t dim1) { return self.transpose(dim0, dim1); });
  aten.def("mT(Tensor(a) self) -> Tensor(a)").python("torch.Tensor.mT.__get__").composite([](const Tensor& self) {
    return last_two("mT", self);
  });
  aten.def("mH(Tensor(a) self) -> Tensor(a)").python("torch.Tensor.mH.__get__").composite([](const Tensor& self) {
    return conjugate(last_two("mH", self));
  });
  aten.def("adjoint(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
    return conjugate(last_two("adjoint", self));
  });
  aten.def("numpy_T(Tensor(a) self) -> Tensor(a)").python("torch.Tensor.T.__get__").composite(numpy_t);
  aten.def("matrix_H(Tensor(a) self) -> Tensor(a)").python("torch.Tensor.H.__get__").composite(matrix_h);
  aten.def("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)").composite(movedim_body);
  aten.def("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)").composite(movedim_one);
  aten.def("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)").composite(movedim_body);
  aten.def("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)").composite(movedim_one);

  aten.def("squeeze(Tensor(a) self) -> Tensor(a)")
      .view([](const Tensor& self) { return rule::squeeze(geometry(self)); })
      .gradient("self", "", gradient::of_squeeze);
  aten.def("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
      .view([](const Tensor& self, int64_t dim) { return rule::squeeze("squeeze", geometry(self), {dim}); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_squeeze_dim);
  aten.def("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
      .view([](const Tensor& self, IntList dim) { return rule::squeeze("squeeze", geometry(self), dim); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_squeeze_dims);
  aten.def("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
      .view([](const Tensor& self, int64_t dim) { return rule::unsqueeze("unsqueeze", geometry(self), dim); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_unsqueeze);

  aten.def("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
      .python("torch.Tensor.expand")
      .view([](const Tensor& self, SymIntList size, bool) { return rule::expand("expand", geometry(self), size); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_same);
  aten.def("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .python("torch.Tensor.expand_as")
      .composite([](const Tensor& self, const Tensor& other) { return self.expand(other.sym_sizes()); });
  aten.def("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)").composite([](const Tensor& self, SymIntList size) {
    return self.expand(size);
  });

  aten.def("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)")
      .view([](const Tensor& self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
        return rule::slice("slice", geometry(self), dim, start, end, step);
      })
      .python("torch.ops.aten.slice")  // neither torch nor Tensor has it
      .tags(Tag::core)
      .gradient("self", "", gradient::of_slice);
  aten.def("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
      .view([](const Tensor& self, int64_t dim, SymInt index) { return rule::select("select", geometry(self), dim, index); })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_select);
  aten.def("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)").composite(narrow_body);
  aten.def("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)").composite(narrow_by_tensor);
  aten.def("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
      .view([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
        return rule::diagonal("diagonal", geometry(self), offset, dim1, dim2);
      })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_diagonal);
  aten.def("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
      .composite([](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) { return a.diagonal(offset, dim1, dim2); });
  aten.def("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
      .python("torch.Tensor.unfold")
      .view([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
        return rule::unfold("unfold", geometry(self), dimension, size, step);
      })
      .gradient("self", "", gradient::of_unfold);
  aten.def("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
      .view([](const Tensor& self, SymIntList size, SymIntList stride, std::optional<SymInt> storage_offset) {
        return rule::as_strided("as_strided", self, size, stride, storage_offset);
      })
      .tags(Tag::core)
      .gradient("self", "", gradient::of_as_strided);
}

}  // namespace calque
