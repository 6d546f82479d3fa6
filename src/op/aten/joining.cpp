// Several tensors into one, and one several times over: stack, repeat, tile, meshgrid, broadcast_tensors.
#include "kernel/cpu/shaping/joining.h"
#include "kernel/cpu/not_implemented.h"

#include <algorithm>

#include "calque/base/warning.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/shape_env.h"
#include "op/rule/geometry.h"
#include "op/rule/joining.h"
#include "op/stanza.h"

namespace calque {
namespace {

using Tensors = std::vector<Tensor>;

// Along an existing dimension a stack is a cat whose result is seen with one dimension more; only behind the last one
// do the inputs themselves need the new dimension.
int64_t stack_dim(TensorList tensors, int64_t dim) {
  if (tensors.empty()) throw UserError("stack: expects a non-empty TensorList");
  return wrap_dim(dim, tensors[0].dim() + 1, "stack");
}
Tensors with_last_dimension(TensorList tensors) {
  Tensors out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(rule::make(t, rule::unsqueeze("stack", rule::geometry(t), -1)));
  return out;
}
Meta stack_rule(TensorList tensors, int64_t dim) {
  const auto d = static_cast<size_t>(stack_dim(tensors, dim));
  const SymIntList first = tensors[0].sym_sizes();
  for (size_t i = 1; i < tensors.size(); ++i)
    if (!rule::equal_sizes(first, tensors[i].sym_sizes()))
      throw UserError("stack: expects each tensor to be equal size, but got " + str(first) + " at entry 0 and " +
                      str(tensors[i].sym_sizes()) + " at entry " + std::to_string(i));
  if (d == first.size()) return rule::cat("stack", with_last_dimension(tensors), static_cast<int64_t>(d));
  Meta m = rule::cat("stack", tensors, static_cast<int64_t>(d));
  SymInts sizes(first.begin(), first.end());
  sizes.insert(sizes.begin() + d, tensors.size());
  // Splitting a dimension is always a view. Its strides are known without the guards of a general view, except for those
  // of dimensions of size 1, which matter only where sizes are plain.
  const bool symbolic = std::any_of(m.sizes.begin(), m.sizes.end(), [](SymInt s) { return s.is_symbolic(); });
  if (symbolic)
    m.strides.insert(m.strides.begin() + d, m.strides[d] * first[d]);
  else
    m.strides = *rule::view_strides(m.sizes, m.strides, sizes);
  m.sizes = sizes;
  return m;
}
void stack_kernel(TensorList tensors, int64_t dim, const Tensor& out) {
  const auto d = static_cast<size_t>(stack_dim(tensors, dim));
  if (out.numel() == 0) return;
  if (d + 1 == static_cast<size_t>(out.dim())) {
    const Tensors longer = with_last_dimension(tensors);
    kernel::cat(pointers(longer), static_cast<int64_t>(d), out);
    return;
  }
  // The new dimension and the one behind it, as one, where memory allows.
  View v = rule::geometry(out);
  if (v.strides[d].as_int() == v.strides[d + 1].as_int() * v.sizes[d + 1].as_int()) {
    v.sizes[d + 1] *= v.sizes[d];
    v.sizes.erase(v.sizes.begin() + d);
    v.strides.erase(v.strides.begin() + d);
    kernel::cat(pointers(tensors), static_cast<int64_t>(d), rule::make(out, v));
    return;
  }
  Tensors unsqueezed;
  for (const Tensor& t : tensors)
    unsqueezed.push_back(rule::make(t, rule::unsqueeze("stack", rule::geometry(t), static_cast<int64_t>(d))));
  kernel::cat(pointers(unsqueezed), static_cast<int64_t>(d), out);
}

Tensor at_least(const Tensor& self, int64_t dims) {
  if (self.dim() >= dims) return self;
  if (dims == 1) return self.reshape({1});
  if (dims == 2) return self.dim() == 0 ? self.reshape({1, 1}) : self.unsqueeze(0);
  if (self.dim() == 0) return self.reshape({1, 1, 1});
  return self.dim() == 1 ? self.unsqueeze(0).unsqueeze(-1) : self.unsqueeze(-1);
}
Tensors all_at_least(TensorList tensors, int64_t dims) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(at_least(t, dims));
  return out;
}
void check_not_empty(const char* op, TensorList tensors) {
  if (tensors.empty()) throw UserError(std::string(op) + ": expects a non-empty TensorList");
}
Tensor hstack_body(TensorList tensors) {
  check_not_empty("hstack", tensors);
  const Tensors aligned = all_at_least(tensors, 1);
  return cat(aligned, aligned[0].dim() == 1 ? 0 : 1);
}
Tensor vstack_body(TensorList tensors) {
  check_not_empty("vstack", tensors);
  return cat(all_at_least(tensors, 2), 0);
}
Tensor dstack_body(TensorList tensors) {
  check_not_empty("dstack", tensors);
  return cat(all_at_least(tensors, 3), 2);
}
Tensor column_stack_body(TensorList tensors) {
  check_not_empty("column_stack", tensors);
  Tensors columns;
  for (const Tensor& t : tensors) columns.push_back(t.dim() <= 1 ? t.reshape({t.sym_numel(), 1}) : t);
  return hstack(columns);
}

Meta repeat_rule(const Tensor& self, SymIntList repeats) {
  const auto n = static_cast<size_t>(self.dim());
  if (repeats.size() < n)
    throw UserError(
        "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, found " +
        std::to_string(repeats.size()) + " repeats for " + std::to_string(n) + " dimensions");
  SymInts sizes;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (!check(repeats[d] >= 0))
      throw UserError("repeat: Repeats cannot be negative, found " + repeats[d].str() + " at index " + std::to_string(d));
    sizes.push_back(d + n < repeats.size() ? repeats[d] : self.sym_sizes()[d + n - repeats.size()] * repeats[d]);
  }
  return rule::contiguous_like(self, std::move(sizes));
}

Tensor tile_body(const Tensor& self, SymIntList dims) {
  SymInts repeats;
  for (size_t d = dims.size(); d < static_cast<size_t>(self.dim()); ++d) repeats.push_back(1);
  for (const SymInt r : dims) repeats.push_back(r);
  return self.repeat(repeats);
}

void check_repeats(const Tensor& repeats) {
  if (repeats.dim() != 1)
    throw UserError("repeat_interleave: only accept 1D vector as repeat, found " + std::to_string(repeats.dim()) +
                    " dimensions");
  if (repeats.dtype() != DType::int32 && repeats.dtype() != DType::int64)
    kernel::not_implemented("repeat_interleave_cpu", repeats.dtype());
}
Tensor repeat_indices_rule(const Tensor& repeats, std::optional<SymInt> output_size) {
  check_repeats(repeats);
  SymInt total = output_size.value_or(0);
  if (guard_or(repeats.sym_size(0) == 0, false)) return make_tensor(rule::contiguous_like(repeats, {0}), true);
  if (!output_size) {
    if (!repeats.impl().env)
      throw UserError(ErrorKind::data_dependent,
                      "repeat_interleave: the size of the result depends on the values of repeats; give output_size");
    total = repeats.impl().env->create_unbacked({0, ValueRange::unbounded_above});
  }
  return make_tensor(rule::contiguous_like(repeats, {total}), true);
}
Tensor repeat_indices_kernel(const Tensor& repeats, std::optional<SymInt> output_size) {
  check_repeats(repeats);
  if (repeats.numel() == 0) return make_tensor({0}, repeats.dtype());  // whatever output_size says
  const int64_t total = kernel::repeat_total(repeats);
  if (output_size && output_size->as_int() != total)
    throw UserError("repeat_interleave: allocated size does not match required size: output_size is " + output_size->str() +
                    ", repeats sum up to " + std::to_string(total));
  const Tensor out = make_tensor({total}, repeats.dtype());
  kernel::repeat_indices(repeats, out);
  return out;
}
Tensor repeat_interleave_by(const Tensor& self, SymInt repeats, std::optional<int64_t> dim,
                            std::optional<SymInt> output_size) {
  if (!check(repeats >= 0)) throw UserError("repeat_interleave: Repeats must be non-negative, found " + repeats.str());
  Tensor input = dim ? self : self.flatten();
  const int64_t d = wrap_dim(dim.value_or(0), self.dim(), "repeat_interleave");
  input = input.unsqueeze(d + 1);
  SymInts shape = input.impl().sizes;
  shape[static_cast<size_t>(d) + 1] = repeats;
  if (output_size && !check(*output_size == repeats * shape[static_cast<size_t>(d)]))
    throw UserError("repeat_interleave: Invalid output_size, expected " + (repeats * shape[static_cast<size_t>(d)]).str() +
                    " but got " + output_size->str());
  return input.expand(shape).clone(MemoryFormat::contiguous).flatten(d, d + 1);
}
Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<SymInt> output_size) {
  const Tensor input = dim ? self : self.flatten();
  const int64_t d = dim.value_or(0);
  if (input.dim() == 0)
    throw UserError("repeat_interleave: Dimension specified as " + std::to_string(d) + " but tensor has no dimensions");
  const SymInt length = input.sym_size(d);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && guard_or(repeats.sym_size(0) == 1, false))) {
    counts = repeats.reshape({1}).expand({length});
  } else if (repeats.dim() != 1) {
    throw UserError("repeat_interleave: repeats must be 0-dim or 1-dim tensor, found " + std::to_string(repeats.dim()) +
                    " dimensions");
  } else if (!check(repeats.sym_size(0) == length)) {
    throw UserError("repeat_interleave: repeats must have the same size as input along dim, but got repeats.size(0) = " +
                    repeats.sym_size(0).str() + " and input.size(" + std::to_string(d) + ") = " + length.str());
  }
  return call("aten::index_select", {input, d, repeat_interleave(counts, output_size)}).to_tensor();
}

Tensors broadcast_body(TensorList tensors) {
  SymInts sizes;
  for (const Tensor& t : tensors) sizes = broadcast_sizes(sizes, t.sym_sizes(), "broadcast_tensors");
  Tensors out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(rule::equal_sizes(t.sym_sizes(), sizes) ? t : t.expand(sizes));
  return out;
}

Tensors meshgrid_ij(TensorList tensors) {
  SymInts shape;
  for (const Tensor& t : tensors) {
    if (t.dim() > 1) throw UserError("meshgrid: Expected 0D or 1D tensor in the tensor list but got: " + str(t.sym_sizes()));
    if (t.dtype() != tensors[0].dtype())
      throw UserError("meshgrid: expects all tensors to have the same dtype, found " +
                      std::string(name(tensors[0].dtype())) + " and " + std::string(name(t.dtype())));
    shape.push_back(t.sym_numel());
  }
  Tensors out;
  SymInts one(tensors.size(), 1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    one[i] = -1;
    out.push_back(tensors[i].view(one).expand(shape));
    one[i] = 1;
  }
  return out;
}
Tensors meshgrid_body(TensorList tensors, std::string_view indexing) {
  check_not_empty("meshgrid", tensors);
  if (indexing != "ij" && indexing != "xy")
    throw UserError("meshgrid: indexing must be one of \"xy\" or \"ij\", but received: " + std::string(indexing));
  if (indexing == "ij" || tensors.size() < 2) return meshgrid_ij(tensors);
  Tensors swapped(tensors.begin(), tensors.end());
  std::swap(swapped[0], swapped[1]);
  Tensors out = meshgrid_ij(swapped);
  std::swap(out[0], out[1]);
  return out;
}
Tensors meshgrid_legacy(TensorList tensors) {
  warn("meshgrid: in an upcoming release, it will be required to pass the indexing argument");
  return meshgrid_body(tensors, "ij");
}

Tensor cartesian_body(TensorList tensors) {
  check_not_empty("cartesian_prod", tensors);
  for (const Tensor& t : tensors)
    if (t.dim() != 1) throw UserError("cartesian_prod: Expect a 1D vector, but got shape " + str(t.sym_sizes()));
  if (tensors.size() == 1) return tensors[0];
  Tensors columns = meshgrid(tensors, "ij");
  for (Tensor& t : columns) t = t.flatten();
  return stack(columns, 1);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
TensorVector stack_gradient(const Gradients& g) {
  TensorVector out;
  for (size_t i = 0; i < g.metas("tensors").size(); ++i)
    out.push_back(g.grad().select(g.integer("dim"), static_cast<int64_t>(i)));
  return out;
}

Tensor repeat_gradient(const Gradients& g) {
  const SymInts repeats = g.sym_ints("repeats");
  const SymIntList sizes = g.sizes("self");
  for (const SymInt r : repeats)
    if (guard_or(r == 0, false)) return zeros(sizes, g.grad().dtype(), Layout::strided, g.grad().device());
  Tensor grad = g.grad();
  const size_t ahead = repeats.size() - sizes.size();
  for (size_t i = 0; i < ahead; ++i) grad = grad.sum({0});
  SymInts apart;
  std::vector<int64_t> summed;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const SymInt repeat = repeats[d + ahead];
    if (!guard_or(repeat == 1, false)) {
      summed.push_back(static_cast<int64_t>(apart.size()));
      apart.push_back(repeat);
    }
    apart.push_back(sizes[d]);
  }
  return summed.empty() ? grad : grad.reshape(apart).sum(summed);
}

}  // namespace

void register_joining(Library& aten);
void register_joining(Library& aten) {
  aten.def("stack(Tensor[] tensors, int dim=0) -> Tensor")
      .tags(Tag::autocast_promote)
      .compute(stack_rule, stack_kernel)
      .out("stack.out")
      .tags(Tag::dense_out, Tag::cast_out, Tag::strided_out)
      .gradient("tensors", "", stack_gradient);
  aten.def("_stack(Tensor[] tensors, int dim=0) -> Tensor")
      .compute(stack_rule, stack_kernel)
      .out("_stack.out")
      .tags(Tag::cast_out, Tag::strided_out);
  aten.def("hstack(Tensor[] tensors) -> Tensor").composite(hstack_body).out("hstack.out").tags(Tag::cast_out);
  aten.def("vstack(Tensor[] tensors) -> Tensor").composite(vstack_body).out("vstack.out").tags(Tag::cast_out);
  aten.def("row_stack(Tensor[] tensors) -> Tensor").composite(vstack_body).out("row_stack.out").tags(Tag::cast_out);
  aten.def("dstack(Tensor[] tensors) -> Tensor").composite(dstack_body).out("dstack.out").tags(Tag::cast_out);
  aten.def("column_stack(Tensor[] tensors) -> Tensor")
      .composite(column_stack_body)
      .out("column_stack.out")
      .tags(Tag::cast_out);
  aten.def("atleast_1d(Tensor self) -> Tensor")
      .python("torch.atleast_1d", "torch.functional.atleast_1d")
      .tags(Tag::not_whole)
      .composite([](const Tensor& self) { return at_least(self, 1); })
      .tags(Tag::may_alias);
  aten.def("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]")
      .composite([](TensorList tensors) { return all_at_least(tensors, 1); })
      .tags(Tag::may_alias);
  aten.def("atleast_2d(Tensor self) -> Tensor")
      .python("torch.atleast_2d", "torch.functional.atleast_2d")
      .tags(Tag::not_whole)
      .composite([](const Tensor& self) { return at_least(self, 2); })
      .tags(Tag::may_alias);
  aten.def("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]")
      .composite([](TensorList tensors) { return all_at_least(tensors, 2); })
      .tags(Tag::may_alias);
  aten.def("atleast_3d(Tensor self) -> Tensor")
      .python("torch.atleast_3d", "torch.functional.atleast_3d")
      .tags(Tag::not_whole)
      .composite([](const Tensor& self) { return at_least(self, 3); })
      .tags(Tag::may_alias);
  aten.def("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]")
      .composite([](TensorList tensors) { return all_at_least(tensors, 3); })
      .tags(Tag::may_alias);

  aten.def("repeat(Tensor self, SymInt[] repeats) -> Tensor")
      .python("torch.Tensor.repeat")
      .compute(repeat_rule, [](const Tensor& self, SymIntList, const Tensor& out) { kernel::repeat(self, out); })
      .out("repeat.out")
      .tags(Tag::dense_out, Tag::strided_out, Tag::core)
      .gradient("self", "", repeat_gradient);
  aten.def("tile(Tensor self, SymInt[] dims) -> Tensor").composite(tile_body);
  aten.def("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
      .own(repeat_indices_rule, repeat_indices_kernel)
      .out("repeat_interleave.Tensor_out")
      .tags(Tag::dense_out, Tag::data_dependent, Tag::allocates_own);
  aten.def(
          "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .composite(repeat_interleave_tensor);
  aten.def("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .composite(repeat_interleave_by);

  aten.def("broadcast_tensors(Tensor[] tensors) -> Tensor[]")
      .python("torch.broadcast_tensors", "torch.functional.broadcast_tensors")
      .composite(broadcast_body)
      .tags(Tag::may_alias);
  aten.def("meshgrid(Tensor[] tensors) -> Tensor[]")
      .python("torch.meshgrid", "torch.functional.meshgrid")
      .composite(meshgrid_legacy)
      .tags(Tag::may_alias);
  aten.def("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]").composite(meshgrid_body).tags(Tag::may_alias);
  aten.def("cartesian_prod(Tensor[] tensors) -> Tensor")
      .python("torch.cartesian_prod", "torch.functional.cartesian_prod")
      .tags(Tag::not_whole)
      .composite(cartesian_body)
      .tags(Tag::may_alias);
}

}  // namespace calque
