// Views, splits, rearrangements and joins.

#include <algorithm>
#include <numeric>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/view_copies.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

std::vector<int64_t> range_of(int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

Tensor transposed(const Tensor& a, int64_t dim0, int64_t dim1) {
  const int64_t rank = std::max<int64_t>(a.dim(), 1);
  const int64_t first = wrap_dim(dim0, rank, "transpose"), second = wrap_dim(dim1, rank, "transpose");
  if (a.dim() <= 1 || dim0 == dim1) return alias(a);
  std::vector<int64_t> order = range_of(a.dim());
  std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  return permute(a, order);
}

std::vector<Tensor> split_evenly(const Tensor& self, SymInt split_size, int64_t dim) {
  const SymInt size = self.sym_size(dim);
  require(split_size >= SymInt(0), "split", "the split size must not be negative");
  if (guard(size == SymInt(0))) return {detach(self)};
  require(split_size > SymInt(0), "split", "the split size can only be 0 for a dimension of size 0");
  const int64_t chunks = floor_div(size + split_size - SymInt(1), split_size).guard_int();
  SymInts sizes(static_cast<size_t>(chunks), split_size);
  sizes.back() = split_size - (split_size * SymInt(chunks) - size);
  return split_with_sizes(self, sizes, dim);
}

Tensor rolled(const Tensor& a, SymIntList shifts, std::vector<int64_t> dims) {
  for (int64_t& d : dims) d = wrap_dim(d, std::max<int64_t>(a.dim(), 1), "roll");
  if (guard(a.sym_numel() == SymInt(0))) return clone(a);
  if (a.dim() == 0 && !dims.empty())
    throw UserError("roll: dimension " + std::to_string(dims[0]) + " of a tensor that has none");
  if (shifts.empty()) throw UserError("roll: `shifts` required");
  if (shifts.size() != 1 || dims.size() != 1) {
    if (dims.empty() && shifts.size() == 1) return view(roll(flatten(a), shifts, IntList{0}), a.sym_sizes());
    if (shifts.size() != dims.size())
      throw UserError("roll: shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
                      ", dims: " + std::to_string(dims.size()));
    const Tensor first = roll(a, SymInts{shifts[0]}, IntList{dims[0]});
    return roll(first, SymInts(shifts.begin() + 1, shifts.end()), std::vector<int64_t>(dims.begin() + 1, dims.end()));
  }
  const SymInt size = a.sym_size(dims[0]);
  const SymInt start = (size - shifts[0]) % size;
  const Tensor positions = arange_on(a, Scalar(size));
  return index_select(a, dims[0], fmod(positions + Scalar(start), Scalar(size)));
}

SymInts sizes_of(const Tensor& t) { return SymInts(t.sym_sizes().begin(), t.sym_sizes().end()); }

// Sizes before the last three dimensions, and the order that keeps them in front of `last`.
struct Batch {
  explicit Batch(const Tensor& t) : sizes(t.sym_sizes().begin(), t.sym_sizes().end() - 3) {}
  SymInts with(std::initializer_list<SymInt> rest) const {
    SymInts out = sizes;
    for (const SymInt s : rest) out.push_back(s);
    return out;
  }
  std::vector<int64_t> order(std::initializer_list<int64_t> last) const {
    const auto n = static_cast<int64_t>(sizes.size());
    std::vector<int64_t> out = range_of(n);
    for (const int64_t d : last) out.push_back(n + d);
    return out;
  }
  SymInts sizes;
};

}  // namespace

void decompose_shaping(DecompositionBuilder& table) {
  table.add({"_unsafe_view"}, [](const Tensor& self, SymIntList size) -> Tensor { return view(self, size); });
  table.add("_reshape_alias", [](const Tensor& self, SymIntList size, SymIntList) -> Tensor { return view(self, size); });
  table.add("detach", [](const Tensor& self) -> Tensor { return alias(self); });
  table.add("t", [](const Tensor& self) -> Tensor {
    if (self.dim() > 2)
      throw UserError("t: expects a tensor with <= 2 dimensions, but self is " + std::to_string(self.dim()) + "D");
    return transpose(self, 0, self.dim() < 2 ? 0 : 1);
  });
  table.add("transpose.int",
            [](const Tensor& self, int64_t dim0, int64_t dim1) -> Tensor { return transposed(self, dim0, dim1); });
  table.add("squeeze", [](const Tensor& self) -> Tensor { return squeeze(self, range_of(self.dim())); });
  table.add("squeeze.dim", [](const Tensor& self, int64_t dim) -> Tensor { return squeeze(self, IntList{dim}); });
  table.add("split.Tensor", [](const Tensor& self, SymInt split_size, int64_t dim) -> std::vector<Tensor> {
    return split_evenly(self, split_size, dim);
  });
  table.add("unsafe_split.Tensor", [](const Tensor& self, SymInt split_size, int64_t dim) -> std::vector<Tensor> {
    return split(self, split_size, dim);
  });
  table.add("unsafe_split_with_sizes", [](const Tensor& self, SymIntList split_sizes, int64_t dim) -> std::vector<Tensor> {
    return split_with_sizes(self, split_sizes, dim);
  });
  table.add("unbind.int", [](const Tensor& self, int64_t dim) -> std::vector<Tensor> {
    dim = wrap_dim(dim, self.dim(), "unbind");
    if (guard(self.sym_size(dim) == SymInt(0))) return {};
    std::vector<Tensor> parts = tensor_split(self, self.sym_size(dim), dim);
    for (Tensor& part : parts) part = squeeze(part, dim);
    return parts;
  });
  table.add("stack", [](TensorList tensors, int64_t dim) -> Tensor {
    if (tensors.empty()) throw UserError("stack: expects a non-empty TensorList");
    const int64_t at = wrap_dim(dim, tensors[0].dim() + 1, "stack");
    if (at < tensors[0].dim()) {
      for (const Tensor& t : tensors) {
        if (t.dim() != tensors[0].dim()) throw UserError("stack: expects each tensor to be equal size");
        for (int64_t d = 0; d < t.dim(); ++d)
          require(t.sym_size(d) == tensors[0].sym_size(d), "stack", "expects each tensor to be equal size");
      }
      SymInts sizes = sizes_of(tensors[0]);
      sizes.insert(sizes.begin() + at, SymInt(tensors.size()));
      return view(cat(tensors, at), sizes);
    }
    std::vector<Tensor> parts;
    for (const Tensor& t : tensors) parts.push_back(t.unsqueeze(at));
    return cat(parts, dim);
  });
  table.add("block_diag", [](TensorList tensors) -> Tensor {
    std::vector<Tensor> blocks;
    SymInt columns = 0;
    for (const Tensor& t : tensors) blocks.push_back(t.dim() <= 1 ? view(t, SymInts{1, -1}) : t);
    for (const Tensor& t : blocks) {
      if (t.dim() != 2)
        throw UserError("block_diag: input tensors must have 2 or fewer dimensions, found " + std::to_string(t.dim()));
      columns += t.sym_size(1);
    }
    std::vector<Tensor> rows;
    SymInt before = 0;
    for (const Tensor& t : blocks) {
      const SymInt width = t.sym_size(1);
      const Tensor left = zeros_on(blocks[0], SymInts{t.sym_size(0), before}, t.dtype());
      const Tensor right = zeros_on(blocks[0], SymInts{t.sym_size(0), columns - before - width}, t.dtype());
      rows.push_back(cat(TensorList{left, t, right}, 1));
      before += width;
    }
    return cat(rows, 0);
  });
  table.add("diag_embed", [](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) -> Tensor {
    const int64_t rank = self.dim() + 1;
    dim1 = wrap_dim(dim1, rank, "diag_embed");
    dim2 = wrap_dim(dim2, rank, "diag_embed");
    if (dim1 == dim2)
      throw UserError("diag_embed: diagonal dimensions cannot be identical " + std::to_string(dim1) + ", " +
                      std::to_string(dim2));
    if (dim1 > dim2) {
      std::swap(dim1, dim2);
      offset = -offset;
    }
    Tensor t = self;
    SymInt last = self.sym_size(-1);
    if (offset != 0) {
      SymInts sizes = sizes_of(self);
      sizes.back() = std::abs(offset);
      const Tensor zero = zeros_on(self, sizes, self.dtype());
      t = offset > 0 ? cat(TensorList{zero, t}, -1) : cat(TensorList{t, zero}, -1);
      last += SymInt(std::abs(offset));
    }
    t = movedim(t.unsqueeze(dim1), -1, dim2);
    const Tensor columns = arange_on(t, Scalar(last), DType::int64);
    const Tensor rows = arange_on(t, Scalar(offset), Scalar(last + SymInt(offset)), DType::int64);
    const Tensor condition = eq(columns, rows.unsqueeze(-1));
    SymInts shape(static_cast<size_t>(t.dim()), SymInt(1));
    shape[static_cast<size_t>(dim1)] = last;
    shape[static_cast<size_t>(dim2)] = last;
    return contiguous(masked(reshape(condition, shape), t));
  });
  table.add("roll", [](const Tensor& self, SymIntList shifts, IntList dims) -> Tensor {
    return rolled(self, shifts, std::vector<int64_t>(dims.begin(), dims.end()));
  });
  table.add("rot90", [](const Tensor& self, int64_t k, IntList dims) -> Tensor {
    if (dims.size() != 2)
      throw UserError("rot90: expected total rotation dims == 2, but got dims = " + std::to_string(dims.size()));
    if (self.dim() < 2)
      throw UserError("rot90: expected total dims >= 2, but got total dims = " + std::to_string(self.dim()));
    const int64_t first = wrap_dim(dims[0], self.dim(), "rot90"), second = wrap_dim(dims[1], self.dim(), "rot90");
    if (first == second)
      throw UserError("rot90: expected rotation dims to be different, but got dim0 = " + std::to_string(first) +
                      " and dim1 = " + std::to_string(second));
    switch (((k % 4) + 4) % 4) {
      case 1: return transpose(flip(self, IntList{second}), first, second);
      case 2: return flip(self, IntList{first, second});
      case 3: return transpose(flip(self, IntList{first}), first, second);
      default: return clone(self, MemoryFormat::contiguous);
    }
  });
  table.add("channel_shuffle", [](const Tensor& self, SymInt groups) -> Tensor {
    if (self.dim() <= 2)
      throw UserError("channel_shuffle: expects input with > 2 dims, but got " + std::to_string(self.dim()));
    const SymInt channels = self.sym_size(1);
    require(groups > SymInt(0), "channel_shuffle", "the number of groups must be positive");
    require(channels % groups == SymInt(0), "channel_shuffle", "the channels cannot be divided among the groups");
    if (guard(self.sym_numel() == SymInt(0))) return view(self, self.sym_sizes());
    SymInts sizes{self.sym_size(0), groups, floor_div(channels, groups)};
    for (int64_t d = 2; d < self.dim(); ++d) sizes.push_back(self.sym_size(d));
    return contiguous(reshape(transpose(reshape(self, sizes), 1, 2), self.sym_sizes()));
  });
  table.add("pixel_shuffle", [](const Tensor& self, int64_t factor) -> Tensor {
    if (self.dim() < 3)
      throw UserError("pixel_shuffle: expects input to have at least 3 dimensions, but got " + std::to_string(self.dim()));
    const Batch batch(self);
    const SymInt r(factor), h = self.sym_size(-2), w = self.sym_size(-1);
    const SymInt channels = floor_div(self.sym_size(-3), SymInt(factor * factor));
    const Tensor split = view(self, batch.with({channels, r, r, h, w}));
    const Tensor moved = permute(split, batch.order({0, 3, 1, 4, 2}));
    return clone(reshape(moved, batch.with({channels, h * r, w * r})), self.suggest_memory_format());
  });
  table.add("pixel_unshuffle", [](const Tensor& self, int64_t factor) -> Tensor {
    if (self.dim() < 3)
      throw UserError("pixel_unshuffle: expects input to have at least 3 dimensions, but got " + std::to_string(self.dim()));
    const Batch batch(self);
    const SymInt r(factor), channels = self.sym_size(-3);
    const SymInt h = floor_div(self.sym_size(-2), r), w = floor_div(self.sym_size(-1), r);
    const Tensor split = view(self, batch.with({channels, h, r, w, r}));
    const Tensor moved = permute(split, batch.order({0, 2, 4, 1, 3}));
    return clone(reshape(moved, batch.with({channels * SymInt(factor * factor), h, w})), self.suggest_memory_format());
  });
  table.add("select_backward", [](const Tensor& grad, SymIntList sizes, int64_t dim, SymInt index) -> Tensor {
    return select_scatter(grad.new_zeros(sizes), grad, dim, index);
  });
  table.add("slice_backward",
            [](const Tensor& grad, SymIntList sizes, int64_t dim, SymInt start, SymInt end, SymInt step) -> Tensor {
              return slice_scatter(grad.new_zeros(sizes), grad, dim, start, end, step);
            });
  table.add("diagonal_backward",
            [](const Tensor& grad, SymIntList sizes, int64_t offset, int64_t dim1, int64_t dim2) -> Tensor {
              return diagonal_scatter(grad.new_zeros(sizes), grad, offset, dim1, dim2);
            });
  table.add("unfold_backward",
            [](const Tensor& grad, SymIntList sizes, int64_t dimension, int64_t size, int64_t step) -> Tensor {
              if (sizes.empty()) return squeeze_copy(grad, 0);
              const int64_t dim = wrap_dim(dimension, static_cast<int64_t>(sizes.size()), "unfold_backward");
              const Tensor zeros = grad.new_zeros(sizes);
              const Tensor line = arange(Scalar(sizes[static_cast<size_t>(dim)]), DType::int32, std::nullopt, grad.device());
              std::vector<Tensor> index(static_cast<size_t>(dim));
              index.push_back(flatten(line.unfold(0, size, step)));
              const Tensor source = flatten(movedim(grad, -1, dim + 1), dim, dim + 1);
              return contiguous(_unsafe_index_put(zeros, index, source, true));
            });
}

}  // namespace calque
