// Rearranging copies: roll, flip, rot90, triangles, pixel and channel shuffles, diagonal matrices.
#include "kernel/cpu/shaping/shaping.h"

#include <algorithm>

#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/not_implemented.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/rule/joining.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::geometry;

bool all_plain(SymIntList values) {
  return std::none_of(values.begin(), values.end(), [](SymInt v) { return v.is_symbolic(); });
}

// ---- roll ---------------------------------------------------------------------------------------------------------
void check_roll(const Tensor& self, SymIntList shifts, IntList dims) {
  if (shifts.empty()) throw UserError("roll: `shifts` required");
  if (dims.empty() && shifts.size() == 1) return;
  if (shifts.size() != dims.size())
    throw UserError("roll: shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
                    ", dims: " + std::to_string(dims.size()));
  if (self.dim() == 0 && !guard_or(self.sym_numel() == 0, false))
    throw UserError("roll: Dimension specified as " + std::to_string(dims[0]) + " but tensor has no dimensions");
}
// Where the rolled dimension starts reading.
SymInt roll_start(SymInt size, SymInt shift) { return (size - shift) % size; }

// PyTorch rolls one dimension after the other, each by a cat of the two halves, so the layout is what these cats give.
Meta roll_rule(const Tensor& self, SymIntList shifts, IntList dims) {
  check_roll(self, shifts, dims);
  Meta m{self.impl().sizes, {}, self.dtype(), self.device(), false};
  if (dims.empty()) {
    m.strides = contiguous_strides(m.sizes);
  } else if (guard_or(self.sym_numel() == 0, false)) {
    m.strides = rule::preserved_strides(self);
  } else if (self.is_symbolic() || !all_plain(shifts)) {
    for (const int64_t d : dims) wrap_dim(d, self.dim(), "roll");
    m.strides = strides_for(self.suggest_memory_format(), m.sizes);
  } else {
    Tensor rolled = self;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t d = wrap_dim(dims[i], self.dim(), "roll");
      const SymInt size = self.sym_size(d);
      const SymInt start = roll_start(size, shifts[i]);
      const View v = geometry(rolled);
      const auto k = static_cast<size_t>(d);
      m = rule::cat(
          "roll",
          {rule::make(rolled, rule::narrow(v, k, start, size - start)), rule::make(rolled, rule::narrow(v, k, 0, start))},
          d);
      if (i + 1 < dims.size()) rolled = make_tensor(m, true);
    }
  }
  return m;
}
void roll_kernel(const Tensor& self, SymIntList shifts, IntList dims, const Tensor& out) {
  if (out.numel() == 0) return;
  if (dims.empty()) {
    const SymInt n = self.numel();
    const SymInt moved = shifts[0] % n;
    const auto flat = [&](const Tensor& t) { return make_view(t, {n}, {1}, t.storage_offset()); };
    const auto dense = [&](const Tensor& t) { return t.is_contiguous() ? t : Tensor(make_tensor(t.sizes(), t.dtype())); };
    const Tensor from = dense(self);
    const Tensor to = dense(out);
    if (!from.is_same(self)) kernel::copy(self, from);
    kernel::roll(flat(from), {moved.as_int()}, flat(to));
    if (!to.is_same(out)) kernel::copy(to, out);
    return;
  }
  SmallVector<int64_t, 8> moved(static_cast<size_t>(self.dim()), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<size_t>(wrap_dim(dims[i], self.dim(), "roll"));
    moved[d] = ((shifts[i] % self.sizes()[d] + moved[d]) % self.sizes()[d]).as_int();
  }
  kernel::roll(self, moved, out);
}

// ---- flip, rot90 --------------------------------------------------------------------------------------------------
Meta flip_rule(const Tensor& self, IntList dims) {
  rule::dim_set("flip", dims, self.dim());
  return {self.impl().sizes, rule::preserved_strides(self), self.dtype(), self.device(), false};
}
void flip_kernel(const Tensor& self, IntList dims, const Tensor& out) {
  kernel::flip(self, self.dim() == 0 ? 0 : rule::dim_set("flip", dims, self.dim()), out);
}
Tensor flip_one(const char* op, const Tensor& self, int64_t dim) {
  if (self.dim() <= dim)
    throw UserError(std::string(op) + ": Input must be >= " + std::to_string(dim + 1) + "-d, found " +
                    std::to_string(self.dim()) + " dimensions");
  return self.flip({dim});
}

// Quarter turns in 0..3 and the two dimensions.
struct Rotation {
  int64_t quarters;
  int64_t dim0, dim1;
};
Rotation rotation(const Tensor& self, int64_t k, IntList dims) {
  if (dims.size() != 2)
    throw UserError("rot90: expected total rotation dims == 2, but got dims = " + std::to_string(dims.size()));
  if (self.dim() < 2) throw UserError("rot90: expected total dims >= 2, but got total dims = " + std::to_string(self.dim()));
  const int64_t dim0 = wrap_dim(dims[0], self.dim(), "rot90");
  const int64_t dim1 = wrap_dim(dims[1], self.dim(), "rot90");
  if (dim0 == dim1)
    throw UserError("rot90: expected rotation dims to be different, but got dim0 = " + std::to_string(dims[0]) +
                    " and dim1 = " + std::to_string(dims[1]));
  return {((k % 4) + 4) % 4, dim0, dim1};
}
Meta rot90_rule(const Tensor& self, int64_t k, IntList dims) {
  const Rotation r = rotation(self, k, dims);
  Meta m{self.impl().sizes, {}, self.dtype(), self.device(), false};
  m.strides = r.quarters == 0 ? contiguous_strides(m.sizes) : rule::preserved_strides(self);
  if (r.quarters % 2 == 1) {
    std::swap(m.sizes[static_cast<size_t>(r.dim0)], m.sizes[static_cast<size_t>(r.dim1)]);
    std::swap(m.strides[static_cast<size_t>(r.dim0)], m.strides[static_cast<size_t>(r.dim1)]);
  }
  return m;
}
void rot90_kernel(const Tensor& self, int64_t k, IntList dims, const Tensor& out) {
  const Rotation r = rotation(self, k, dims);
  const uint64_t both = uint64_t{1} << r.dim0 | uint64_t{1} << r.dim1;
  if (r.quarters == 0)
    kernel::copy(self, out);
  else if (r.quarters == 2)
    kernel::flip(self, both, out);
  else
    kernel::flip(self, uint64_t{1} << (r.quarters == 1 ? r.dim1 : r.dim0),
                 rule::make(out, rule::transpose("rot90", geometry(out), r.dim0, r.dim1)));
}

// ---- triangles ----------------------------------------------------------------------------------------------------
template <bool lower>
Meta triangle_rule(const Tensor& self, SymInt) {
  const std::string op = lower ? "tril" : "triu";
  if (self.dim() < 2)
    throw UserError(op + ": input tensor must have at least 2 dimensions, found " + std::to_string(self.dim()));
  if (is_barebones_unsigned(self.dtype()) || is_float8(self.dtype())) kernel::not_implemented(op, self.dtype());
  return rule::contiguous_like(self, self.impl().sizes);
}
template <bool lower>
void triangle_kernel(const Tensor& self, SymInt diagonal, const Tensor& out) {
  kernel::triangle(self, diagonal.as_int(), lower, out);
}
template <bool lower>
Meta triangle_indices_rule(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                           std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  const std::string op = lower ? "tril_indices" : "triu_indices";
  if (row < 0 || col < 0)
    throw UserError(op + ": row and col must be non-negative, got " + std::to_string(row) + " and " + std::to_string(col));
  const DType d = dtype.value_or(DType::int64);
  if (d != DType::int64 && d != DType::int32) kernel::not_implemented(op, d);
  return rule::factory(op.c_str(), {2, kernel::triangle_count(row, col, offset, lower)}, d, layout, device, pin_memory);
}
template <bool lower>
void triangle_indices_kernel(int64_t row, int64_t col, int64_t offset, std::optional<DType>, std::optional<Layout>,
                             std::optional<Device>, std::optional<bool>, const Tensor& out) {
  kernel::triangle_indices(row, col, offset, lower, out);
}

// ---- shuffles -----------------------------------------------------------------------------------------------------
void check_shuffled_dtype(const char* op, const Tensor& self) {
  if (is_barebones_unsigned(self.dtype()) || is_float8(self.dtype())) kernel::not_implemented(op, self.dtype());
}
Meta shuffled(const char* op, const Tensor& self, SymInts sizes) {
  const MemoryFormat format = self.suggest_memory_format();
  if (format == MemoryFormat::channels_last_3d)
    throw UserError(std::string(op) + ": Unsupported memory format. Supports only ChannelsLast, Contiguous");
  SymInts strides = strides_for(format, sizes);
  return {std::move(sizes), std::move(strides), self.dtype(), self.device(), false};
}
Meta pixel_shuffle_rule(const Tensor& self, int64_t factor) {
  if (self.dim() < 3)
    throw UserError("pixel_shuffle: expects input to have at least 3 dimensions, but got input with " +
                    std::to_string(self.dim()) + " dimension(s)");
  if (factor <= 0) throw UserError("pixel_shuffle: expects a positive upscale_factor, but got " + std::to_string(factor));
  check_shuffled_dtype("pixel_shuffle", self);
  SymInts sizes = self.impl().sizes;
  const size_t c = sizes.size() - 3;
  if (!check(sizes[c] % (SymInt(factor) * factor) == 0))
    throw UserError(
        "pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=" +
        sizes[c].str() + " is not divisible by " + (SymInt(factor) * factor).str());
  sizes[c] = floor_div(sizes[c], SymInt(factor) * factor);
  sizes[c + 1] *= factor;
  sizes[c + 2] *= factor;
  return shuffled("pixel_shuffle", self, std::move(sizes));
}
Meta pixel_unshuffle_rule(const Tensor& self, int64_t factor) {
  if (self.dim() < 3)
    throw UserError("pixel_unshuffle: expects input to have at least 3 dimensions, but got input with " +
                    std::to_string(self.dim()) + " dimension(s)");
  if (factor <= 0)
    throw UserError("pixel_unshuffle: expects a positive downscale_factor, but got " + std::to_string(factor));
  check_shuffled_dtype("pixel_unshuffle", self);
  SymInts sizes = self.impl().sizes;
  const size_t c = sizes.size() - 3;
  for (const size_t d : {c + 1, c + 2})
    if (!check(sizes[d] % factor == 0))
      throw UserError(std::string("pixel_unshuffle: expects ") + (d == c + 1 ? "height" : "width") +
                      " to be divisible by downscale_factor, but input.size(-" + std::to_string(c + 3 - d) +
                      ")=" + sizes[d].str() + " is not divisible by " + std::to_string(factor));
  // ATen gives an empty input back as it came.
  if (std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return guard_or(s == 0, false); }))
    return {sizes, rule::preserved_strides(self), self.dtype(), self.device(), false};
  sizes[c] *= SymInt(factor) * factor;
  sizes[c + 1] = floor_div(sizes[c + 1], factor);
  sizes[c + 2] = floor_div(sizes[c + 2], factor);
  return shuffled("pixel_unshuffle", self, std::move(sizes));
}

// Splits dimension d of v into (outer, inner).
View split_dim(View v, size_t d, SymInt inner) {
  v.sizes.insert(v.sizes.begin() + d + 1, inner);
  v.strides.insert(v.strides.begin() + d + 1, v.strides[d]);
  v.sizes[d] = floor_div(v.sizes[d], inner);
  v.strides[d] *= inner;
  return v;
}
// Copies between the packed tensor (C*r*r, H, W) and the large one (C, H*r, W*r).
void pixel_copy(const Tensor& packed, const Tensor& large, int64_t r, bool to_large) {
  if (packed.numel() == 0) return;
  const size_t c = static_cast<size_t>(packed.dim()) - 3;
  View p = split_dim(split_dim(geometry(packed), c, r), c, r);         // C, r, r, H, W
  View l = split_dim(split_dim(geometry(large), c + 2, r), c + 1, r);  // C, H, r, W, r
  SmallVector<int64_t, 8> order;
  for (size_t d = 0; d <= c; ++d) order.push_back(static_cast<int64_t>(d));
  for (const size_t d : {c + 3, c + 1, c + 4, c + 2}) order.push_back(static_cast<int64_t>(d));
  const Tensor a = rule::make(packed, rule::permute("pixel_shuffle", p, order));
  const Tensor b = rule::make(large, l);
  if (to_large)
    kernel::copy(a, b);
  else
    kernel::copy(b, a);
}

Meta channel_shuffle_rule(const Tensor& self, SymInt groups) {
  if (self.dim() <= 2)
    throw UserError("channel_shuffle: expects input with > 2 dims, but got input with sizes " + str(self.sym_sizes()));
  if (!check(groups > 0))
    throw UserError("channel_shuffle: Number of groups to divide channels in must be positive. Value of groups: " +
                    groups.str());
  check_shuffled_dtype("channel_shuffle", self);
  if (!check(self.sym_sizes()[1] % groups == 0))
    throw UserError("channel_shuffle: Number of channels must be divisible by groups. Got " + self.sym_sizes()[1].str() +
                    " channels and " + groups.str() + " groups");
  return {self.impl().sizes, strides_for(self.suggest_memory_format(), self.impl().sizes), self.dtype(), self.device(),
          false};
}
void channel_shuffle_kernel(const Tensor& self, SymInt groups, const Tensor& out) {
  if (out.numel() == 0) return;
  const SymInt per_group = floor_div(self.sym_sizes()[1], groups);
  const View from = split_dim(geometry(self), 1, per_group);
  kernel::copy(rule::make(self, rule::transpose("channel_shuffle", from, 1, 2)),
               rule::make(out, split_dim(geometry(out), 1, groups)));
}

// An empty tensor is given back as it is.
template <bool fake>
Tensor channel_shuffle(const Tensor& self, SymInt groups) {
  const Meta meta = channel_shuffle_rule(self, groups);
  if (guard_or(self.sym_numel() == 0, false)) return rule::make(self, geometry(self));
  const Tensor out = make_tensor(meta, fake);
  if constexpr (!fake) channel_shuffle_kernel(self, groups, out);
  return out;
}

// ---- diagonal matrices --------------------------------------------------------------------------------------------
Meta diag_embed_rule(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t n = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, n, "diag_embed");
  const int64_t b = wrap_dim(dim2, n, "diag_embed");
  if (a == b)
    throw UserError("diag_embed: diagonal dimensions cannot be identical " + std::to_string(dim1) + ", " +
                    std::to_string(dim2));
  SymInts sizes = self.impl().sizes;
  const SymInt length = sizes.back() + (offset < 0 ? -SymInt(offset) : SymInt(offset));
  sizes.pop_back();
  sizes.insert(sizes.begin() + std::min(a, b), length);
  sizes.insert(sizes.begin() + std::max(a, b), length);
  return rule::contiguous_like(self, std::move(sizes));
}
void diag_embed_kernel(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2, const Tensor& out) {
  kernel::fill(out, 0);
  kernel::copy(self, rule::make(out, rule::diagonal("diag_embed", geometry(out), offset, dim1, dim2)));
}
Tensor diag_body(const Tensor& self, int64_t diagonal) {
  if (self.dim() == 1) return self.diag_embed(diagonal, 0, 1);
  if (self.dim() == 2) return self.diagonal_copy(diagonal, 0, 1);
  throw UserError("diag: Supports 1D or 2D tensors. Got " + std::to_string(self.dim()) + "D");
}

Meta block_diag_rule(TensorList tensors) {
  if (tensors.empty()) return {{1, 0}, {1, 1}, default_dtype(), Device{}, false};
  TypePromotion promotion;
  SymInt rows = 0;
  SymInt columns = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.dim() > 2)
      throw UserError("block_diag: Input tensors must have 2 or fewer dimensions. Input " + std::to_string(i) + " has " +
                      std::to_string(t.dim()) + " dimensions");
    if (!(t.device() == tensors[0].device()))
      throw UserError("block_diag: input tensors must all be on the same device, found " + tensors[0].device().str() +
                      " and " + t.device().str());
    promotion.add(t);
    rows += t.dim() == 2 ? t.sym_size(0) : SymInt(1);
    columns += t.dim() == 0 ? SymInt(1) : t.sym_size(-1);
  }
  const SymInts sizes{rows, columns};
  return {sizes, contiguous_strides(sizes), promotion.result(), tensors[0].device(), false};
}
void block_diag_kernel(TensorList tensors, const Tensor& out) {
  kernel::fill(out, 0);
  int64_t row = 0;
  int64_t column = 0;
  for (const Tensor& t : tensors) {
    const int64_t rows = t.dim() == 2 ? t.size(0) : 1;
    const int64_t columns = t.dim() == 0 ? 1 : t.size(-1);
    kernel::copy(t, make_view(out, {rows, columns}, out.impl().strides,
                              out.storage_offset() + row * out.stride(0) + column * out.stride(1)));
    row += rows;
    column += columns;
  }
}

TensorVector of_blocks(const Gradients& g) {
  TensorVector out;
  SymInt row = 0, column = 0;
  for (const Meta& m : g.metas("tensors")) {
    if (m.sizes.size() == 1 && guard(m.sizes[0] == 0)) {
      out.push_back(g.grad().new_zeros({0}));
      continue;
    }
    const SymInt rows = m.sizes.size() == 2 ? m.sizes[0] : SymInt(1), columns = m.sizes.empty() ? SymInt(1) : m.sizes.back();
    Tensor block = g.grad().slice(0, row, row + rows).slice(1, column, column + columns);
    // A vector's row is summed to it.
    if (m.sizes.size() < 2) block = block.squeeze(-1);
    if (m.sizes.empty()) block = block.squeeze(-1);
    out.push_back(block);
    row += rows;
    column += columns;
  }
  return out;
}

}  // namespace

void register_shaping(Library& aten);
void register_shaping(Library& aten) {
  aten.def("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
      .compute(roll_rule, roll_kernel)
      .out("roll.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        SymInts shifts = g.sym_ints("shifts");
        std::reverse(shifts.begin(), shifts.end());
        for (SymInt& shift : shifts) shift = -shift;
        std::vector<int64_t> dims = g.integers("dims");
        std::reverse(dims.begin(), dims.end());
        return g.grad().roll(shifts, dims);
      });
  aten.def("flip(Tensor self, int[] dims) -> Tensor")
      .compute(flip_rule, flip_kernel)
      .out("flip.out")
      .tags(Tag::dense_out, Tag::strided_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad().flip(g.integers("dims")); });
  aten.def("fliplr(Tensor self) -> Tensor").composite([](const Tensor& self) { return flip_one("fliplr", self, 1); });
  aten.def("flipud(Tensor self) -> Tensor").composite([](const Tensor& self) { return flip_one("flipud", self, 0); });
  aten.def("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
      .compute(rot90_rule, rot90_kernel)
      .out("rot90.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().rot90(-g.integer("k"), g.integers("dims")); });

  aten.def("tril(Tensor self, SymInt diagonal=0) -> Tensor")
      .compute(triangle_rule<true>, triangle_kernel<true>)
      .in_place("tril_")
      .out("tril.out")
      .tags(Tag::overlap_ok, Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().tril(g.sym_int("diagonal")); });
  aten.def("triu(Tensor self, SymInt diagonal=0) -> Tensor")
      .compute(triangle_rule<false>, triangle_kernel<false>)
      .in_place("triu_")
      .out("triu.out")
      .tags(Tag::overlap_ok, Tag::strided_out, Tag::self_in_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().triu(g.sym_int("diagonal")); });
  aten.def(
          "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute(triangle_indices_rule<true>, triangle_indices_kernel<true>);
  aten.def(
          "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute(triangle_indices_rule<false>, triangle_indices_kernel<false>);

  aten.def("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
      .python_alias("torch.nn.functional.pixel_shuffle", "torch.pixel_shuffle")
      .compute(pixel_shuffle_rule,
               [](const Tensor& self, int64_t factor, const Tensor& out) { pixel_copy(self, out, factor, true); })
      .out("pixel_shuffle.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().pixel_unshuffle(g.integer("upscale_factor")); });
  aten.def("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
      .python_alias("torch.nn.functional.pixel_unshuffle", "torch.pixel_unshuffle")
      .compute(pixel_unshuffle_rule,
               [](const Tensor& self, int64_t factor, const Tensor& out) { pixel_copy(out, self, factor, false); })
      .out("pixel_unshuffle.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().pixel_shuffle(g.integer("downscale_factor")); });
  aten.def("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
      .python_alias("torch.nn.functional.channel_shuffle", "torch.channel_shuffle")
      .own(channel_shuffle<true>, channel_shuffle<false>)
      .out("channel_shuffle.out")
      .tags(Tag::dense_out, Tag::may_alias)
      .gradient("self", "", [](const Gradients& g) {
        return g.grad().channel_shuffle(floor_div(g.sizes("self")[1], g.sym_int("groups")));
      });
  aten.def("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")
      .python_alias("torch.nn.functional.native_channel_shuffle", "torch.native_channel_shuffle")
      .compute(channel_shuffle_rule, channel_shuffle_kernel)
      .tags(Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return g.grad().native_channel_shuffle(floor_div(g.sizes("self")[1], g.sym_int("groups")));
      });

  aten.def("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
      .compute(diag_embed_rule, diag_embed_kernel)
      .out("diag_embed.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return g.grad().diagonal(g.integer("offset"), g.integer("dim1"), g.integer("dim2"));
      });
  aten.def("diag(Tensor self, int diagonal=0) -> Tensor").composite(diag_body).out("diag.out");
  aten.def("diagflat(Tensor self, int offset=0) -> Tensor").composite([](const Tensor& self, int64_t offset) {
    return self.contiguous().view({-1}).diag(offset);
  });
  aten.def("block_diag(Tensor[] tensors) -> Tensor")
      .python("torch.block_diag", "torch.functional.block_diag")
      .compute(block_diag_rule, block_diag_kernel)
      .out("block_diag.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("tensors", "", of_blocks);
}

}  // namespace calque
