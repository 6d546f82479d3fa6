// Views that change more than the shape (the element type), and the in-place forms that change a tensor's own sizes and
// strides instead of making a view.
#include <algorithm>

#include "calque/op/aten/copying.h"
#include "calque/sym/shape_env.h"
#include "op/gradient/views.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::geometry;

Tensor typed_view(const Tensor& self, const View& v, DType dtype) {
  return make_view(self, v.sizes, v.strides, v.offset, dtype);
}

Tensor view_as_dtype(const Tensor& self, DType dtype) {
  const auto from = static_cast<int64_t>(item_size(self.dtype()));
  const auto to = static_cast<int64_t>(item_size(dtype));
  View v = geometry(self);
  if (from == to) return typed_view(self, v, dtype);
  const std::string what =
      " to view " + std::string(name(self.dtype())) + " as " + std::string(name(dtype)) + " (different element sizes)";
  if (v.sizes.empty()) throw UserError("view.dtype: self.dim() cannot be 0" + what);
  const size_t last = v.sizes.size() - 1;
  if (!check(v.strides[last] == 1))
    throw UserError("view.dtype: self.stride(-1) must be 1" + what + ", but got " + v.strides[last].str());
  if (from > to) {
    const int64_t ratio = from / to;
    for (size_t d = 0; d < last; ++d) v.strides[d] *= ratio;
    v.sizes[last] *= ratio;
    v.offset *= ratio;
    return typed_view(self, v, dtype);
  }
  const int64_t ratio = to / from;
  const auto divide = [&](SymInt& value, const std::string& which) {
    if (!check(value % ratio == 0))
      throw UserError("view.dtype: self." + which + " must be divisible by " + std::to_string(ratio) + what + ", but got " +
                      value.str());
    value = floor_div(value, ratio);
  };
  divide(v.sizes[last], "size(-1)");
  divide(v.offset, "storage_offset()");
  for (size_t d = 0; d < last; ++d) divide(v.strides[d], "stride(" + std::to_string(d) + ")");
  return typed_view(self, v, dtype);
}

Tensor as_real(const Tensor& self) {
  if (!is_complex(self.dtype()))
    throw UserError("view_as_real: is only supported for complex tensors, found " + std::string(name(self.dtype())));
  View v = geometry(self);
  for (SymInt& s : v.strides) s *= 2;
  v.offset *= 2;
  v.sizes.push_back(2);
  v.strides.push_back(1);
  return typed_view(self, v, to_real(self.dtype()));
}

Tensor as_complex(const Tensor& self) {
  if (self.dtype() != DType::float32 && self.dtype() != DType::float64)
    throw UserError("view_as_complex: is only supported for float32 and float64 tensors, but got a tensor of dtype " +
                    std::string(name(self.dtype())));
  View v = geometry(self);
  if (v.sizes.empty()) throw UserError("view_as_complex: Input tensor must have one or more dimensions");
  if (!check(v.sizes.back() == 2))
    throw UserError("view_as_complex: Tensor must have a last dimension of size 2, found " + v.sizes.back().str());
  if (!check(v.strides.back() == 1))
    throw UserError("view_as_complex: Tensor must have a last dimension with stride 1, found " + v.strides.back().str());
  v.sizes.pop_back();
  v.strides.pop_back();
  for (size_t d = 0; d < v.strides.size(); ++d) {
    if (!check(v.strides[d] % 2 == 0))
      throw UserError("view_as_complex: Tensor must have a stride divisible by 2 for all but last dimension, found " +
                      v.strides[d].str());
    v.strides[d] = floor_div(v.strides[d], 2);
  }
  if (!check(v.offset % 2 == 0))
    throw UserError("view_as_complex: Tensor must have a storage_offset divisible by 2, found " + v.offset.str());
  v.offset = floor_div(v.offset, 2);
  return typed_view(self, v, self.dtype() == DType::float32 ? DType::complex64 : DType::complex128);
}

Tensor real_part(const Tensor& self) { return is_complex(self.dtype()) ? self.view_as_real().select(-1, 0) : self; }
Tensor imaginary_part(const Tensor& self) {
  if (!is_complex(self.dtype()))
    throw UserError("imag: is not implemented for tensors with non-complex dtypes, found " +
                    std::string(name(self.dtype())));
  return self.view_as_real().select(-1, 1);
}

// ---- in place -------------------------------------------------------------------------------------------------------
Tensor become(const Tensor& self, const View& v) {
  set_geometry(self, v.sizes, v.strides, v.offset);
  self.storage()->bump_version();
  return self;
}

Tensor transpose_self(const Tensor& self, int64_t a, int64_t b) {
  return become(self, rule::transpose("transpose_", geometry(self), a, b));
}
Tensor t_self(const Tensor& self) {
  if (self.dim() > 2)
    throw UserError("t_: expects a tensor with <= 2 dimensions, but self is " + std::to_string(self.dim()) + "D");
  return become(self, rule::transpose("t_", geometry(self), 0, self.dim() < 2 ? 0 : 1));
}
Tensor squeeze_self(const Tensor& self) { return become(self, rule::squeeze(geometry(self))); }
Tensor squeeze_self_dim(const Tensor& self, int64_t dim) {
  return become(self, rule::squeeze("squeeze_", geometry(self), {dim}));
}
Tensor squeeze_self_dims(const Tensor& self, IntList dims) {
  return become(self, rule::squeeze("squeeze_", geometry(self), dims));
}
Tensor unsqueeze_self(const Tensor& self, int64_t dim) {
  return become(self, rule::unsqueeze("unsqueeze_", geometry(self), dim));
}
Tensor as_strided_self(const Tensor& self, SymIntList size, SymIntList stride, std::optional<SymInt> offset) {
  return become(self, rule::as_strided("as_strided_", self, size, stride, offset));
}

}  // namespace

void register_view_metadata(Library& aten);
void register_view_metadata(Library& aten) {
  aten.def("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
      .python("torch.Tensor.view")
      .own(view_as_dtype, view_as_dtype)
      .tags(Tag::view)
      .no_gradient();
  aten.def("view_as_real(Tensor(a) self) -> Tensor(a)")
      .own(as_real, as_real)
      .tags(Tag::view)
      .gradient("self", "", [](const Gradients& g) { return g.grad().contiguous().view_as_complex(); });
  aten.def("view_as_complex(Tensor(a) self) -> Tensor(a)")
      .tags(Tag::autocast_float32)
      .own(as_complex, as_complex)
      .tags(Tag::view)
      .gradient("self", "", [](const Gradients& g) { return g.grad().contiguous().view_as_real(); });
  aten.def("real(Tensor(a) self) -> Tensor(a)").python_alias("torch.Tensor.real.__get__").composite(real_part);
  aten.def("imag(Tensor(a) self) -> Tensor(a)").python_alias("torch.Tensor.imag.__get__").composite(imaginary_part);

  aten.def("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
      .own(transpose_self, transpose_self)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_transpose);
  aten.def("t_(Tensor(a!) self) -> Tensor(a!)")
      .own(t_self, t_self)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_t);
  aten.def("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)")
      .composite([](const Tensor& self, int64_t axis0, int64_t axis1) { return self.transpose_(axis0, axis1); })
      .tags(Tag::in_place);
  aten.def("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
      .composite([](const Tensor& self, int64_t dim0, int64_t dim1) { return self.transpose_(dim0, dim1); })
      .tags(Tag::in_place);
  aten.def("squeeze_(Tensor(a!) self) -> Tensor(a!)")
      .own(squeeze_self, squeeze_self)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_squeeze);
  aten.def("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)")
      .own(squeeze_self_dim, squeeze_self_dim)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_squeeze_dim);
  aten.def("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)")
      .own(squeeze_self_dims, squeeze_self_dims)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_squeeze_dims);
  aten.def("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)")
      .own(unsqueeze_self, unsqueeze_self)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_unsqueeze);
  aten.def("as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)")
      .own(as_strided_self, as_strided_self)
      .tags(Tag::in_place, Tag::view, Tag::inplace_view)
      .gradient("self", "", gradient::of_as_strided);
}

}  // namespace calque
