// One tensor into several views: split, chunk, unbind and NumPy's variants of them.
#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/zeros.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using rule::geometry;
using Views = std::vector<View>;

std::string dimensions_of(const Tensor& t) { return std::to_string(t.dim()) + " dimensions"; }

Views split_rule(const char* op, const Tensor& self, SymInt split_size, int64_t dim) {
  if (self.dim() == 0) throw UserError(std::string(op) + ": expects at least a 1-dimensional tensor");
  if (!check(split_size >= 0))
    throw UserError(std::string(op) + ": expects split_size be non-negative, but got split_size=" + split_size.str());
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), op));
  const View v = geometry(self);
  const SymInt size = v.sizes[d];
  if (guard_or(split_size == 0, false)) {
    if (!check(size == 0))
      throw UserError(std::string(op) + ": split_size can only be 0 if dimension size is 0, but got dimension size of " +
                      size.str());
    return {v};
  }
  // A split at least as long as the dimension gives one piece, whatever its length.
  const int64_t count =
      guard_or(size <= split_size, false) ? 1 : sym_max(floor_div(size + split_size - 1, split_size), 1).guard_int();
  Views out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    out.push_back(rule::narrow(v, d, split_size * i, i + 1 < count ? split_size : size - split_size * (count - 1)));
  return out;
}

Views split_with_sizes_rule(const char* op, const Tensor& self, SymIntList split_sizes, int64_t dim) {
  if (self.dim() == 0) throw UserError(std::string(op) + ": expects at least a 1-dimensional tensor");
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), op));
  const View v = geometry(self);
  SymInt sum = 0;
  for (const SymInt s : split_sizes) {
    if (!check(s >= 0))
      throw UserError(std::string(op) +
                      ": expects split_sizes have only non-negative entries, but got split_sizes=" + str(split_sizes));
    sum += s;
  }
  if (!identical(sum, v.sizes[d]) && !check(sum == v.sizes[d]))
    throw UserError(std::string(op) + ": expects split_sizes to sum exactly to " + v.sizes[d].str() +
                    " (input tensor's size at dimension " + std::to_string(dim) +
                    "), but got split_sizes=" + str(split_sizes));
  Views out;
  out.reserve(split_sizes.size());
  SymInt start = 0;
  for (const SymInt s : split_sizes) {
    out.push_back(rule::narrow(v, d, start, s));
    start += s;
  }
  return out;
}

Views unbind_rule(const char* op, const Tensor& self, int64_t dim) {
  if (self.dim() == 0)
    throw UserError(std::string(op) + ": Dimension specified as " + std::to_string(dim) + " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim(), op);
  const View v = geometry(self);
  const int64_t count = v.sizes[static_cast<size_t>(d)].guard_int();
  Views out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out.push_back(rule::select(op, v, d, i));
  return out;
}

std::vector<Tensor> made(const Tensor& self, const Views& views) {
  std::vector<Tensor> out;
  out.reserve(views.size());
  for (const View& v : views) out.push_back(rule::make(self, v));
  return out;
}

// The sizes of `chunks` pieces of which some may be empty; none where a plain split says it all.
constexpr int64_t most_chunks = int64_t{1} << 24;
std::vector<Tensor> chunk_by(const char* op, const Tensor& self, int64_t chunks, int64_t dim, bool safe) {
  if (self.dim() == 0) throw UserError(std::string(op) + ": expects at least a 1-dimensional tensor");
  if (chunks <= 0 || chunks > most_chunks)
    throw UserError(std::string(op) + ": expects `chunks` to be greater than 0 and at most " + std::to_string(most_chunks) +
                    ", got: " + std::to_string(chunks));
  const SymInt size = self.sym_size(dim);
  const SymInt split_size = floor_div(size + chunks - 1, chunks);
  if (guard_or(split_size == 0, false) && guard_or(size == 0, false)) {
    const SymInts sizes(static_cast<size_t>(chunks), 0);
    return safe ? self.split_with_sizes(sizes, dim) : self.unsafe_split_with_sizes(sizes, dim);
  }
  return safe ? self.split(split_size, dim) : self.unsafe_split(split_size, dim);
}

std::vector<Tensor> tensor_split_sections(const Tensor& self, SymInt sections, int64_t dim) {
  if (self.dim() == 0)
    throw UserError("tensor_split: expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  const int64_t d = wrap_dim(dim, self.dim(), "tensor_split");
  const int64_t count = sections.guard_int();
  if (count <= 0) throw UserError("tensor_split: number of sections must be larger than 0, got " + std::to_string(count));
  const SymInt size = self.sym_size(d);
  const SymInt least = floor_div(size, count);
  const SymInt longer = size % count;
  std::vector<Tensor> out;
  SymInt start = 0;
  for (int64_t i = 0; i < count; ++i) {
    const SymInt length = guard(longer > i) ? least + 1 : least;
    out.push_back(self.slice(d, start, start + length, 1));
    start += length;
  }
  return out;
}

std::vector<Tensor> tensor_split_indices(const Tensor& self, SymIntList indices, int64_t dim) {
  if (self.dim() == 0)
    throw UserError("tensor_split: expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  const int64_t d = wrap_dim(dim, self.dim(), "tensor_split");
  std::vector<Tensor> out;
  SymInt start = 0;
  for (const SymInt end : indices) {
    out.push_back(self.slice(d, start, end, 1));
    start = end;
  }
  out.push_back(self.slice(d, start, self.sym_size(d), 1));
  return out;
}

std::vector<Tensor> tensor_split_by_tensor(const Tensor& self, const Tensor& where, int64_t dim) {
  if (where.device().type != DeviceType::cpu || where.dtype() != DType::int64 || where.dim() > 1)
    throw UserError("tensor_split: expected tensor_indices_or_sections to be a 0-D or 1-D int64 tensor on cpu, found " +
                    std::to_string(where.dim()) + "-D " + std::string(name(where.dtype())) + " on " + where.device().str());
  const auto value = [](const Tensor& t) { return t.item().sym_int(); };
  if (where.dim() == 0) return self.tensor_split(value(where), dim);
  SymInts indices;
  for (int64_t i = 0; i < where.size(0); ++i) indices.push_back(value(where.select(0, i)));
  return self.tensor_split(indices, dim);
}

// hsplit, vsplit, dsplit: along one dimension, evenly.
int64_t numpy_split_dim(const char* op, const Tensor& self, int64_t least) {
  if (self.dim() < least)
    throw UserError(std::string(op) + ": requires a tensor with at least " + std::to_string(least) +
                    " dimension, but got a tensor with " + dimensions_of(self));
  return least == 3 ? 2 : least == 2 ? 0 : self.dim() == 1 ? 0 : 1;
}
std::vector<Tensor> numpy_split(const char* op, const Tensor& self, int64_t sections, int64_t least) {
  const int64_t d = numpy_split_dim(op, self, least);
  if (sections == 0 || !check(self.sym_size(d) % sections == 0))
    throw UserError(std::string(op) + ": attempted to split along dimension " + std::to_string(d) +
                    ", but the size of the dimension " + self.sym_size(d).str() + " is not divisible by the split_size " +
                    std::to_string(sections));
  return self.tensor_split(SymInt(sections), d);
}
std::vector<Tensor> numpy_split(const char* op, const Tensor& self, IntList indices, int64_t least) {
  return self.tensor_split(as_sym(indices), numpy_split_dim(op, self, least));
}

// ---- gradients ------------------------------------------------------------------------------------------------------
SymInts pieces_of(const Gradients& g) {
  const auto dim = static_cast<size_t>(wrap_dim(g.integer("dim"), g.dim("self"), "split"));
  const SymInt size = g.sizes("self")[dim], piece = g.sym_int("split_size");
  if (guard_or(piece == 0, false)) return {size};
  SymInts out;
  SymInt left = size;
  for (; guard(left > piece); left = left - piece) out.push_back(piece);
  out.push_back(left);
  return out;
}
Tensor split_gradient(const Gradients& g, const SymInts& pieces) {
  TensorVector parts;
  for (size_t i = 0; i < pieces.size(); ++i) parts.push_back(g.grad_or_zeros(i));
  return cat(parts, wrap_dim(g.integer("dim"), g.dim("self"), "split"));
}
Tensor unbind_gradient(const Gradients& g) {
  const int64_t dim = wrap_dim(g.integer("dim"), g.dim("self"), "unbind");
  const int64_t count = g.sizes("self")[static_cast<size_t>(dim)].guard_int();
  TensorVector parts;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& grad = g.grad(static_cast<size_t>(i));
    const Meta& m = g.result_meta(static_cast<size_t>(i));
    parts.push_back(grad.defined() ? grad : zeros(SymIntList(), m.dtype, Layout::strided, m.device).expand(m.sizes));
  }
  return stack(parts, dim);
}

}  // namespace

void register_splitting(Library& aten);
void register_splitting(Library& aten) {
  aten.def("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
      .python("torch.split", "torch.functional.split")
      .view([](const Tensor& self, SymInt split_size, int64_t dim) { return split_rule("split", self, split_size, dim); })
      .gradient("self", "", [](const Gradients& g) { return split_gradient(g, pieces_of(g)); });
  aten.def("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
      .view([](const Tensor& self, SymIntList split_sizes, int64_t dim) {
        return split_with_sizes_rule("split_with_sizes", self, split_sizes, dim);
      })
      .tags(Tag::sizes_results, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return split_gradient(g, g.sym_ints("split_sizes")); });
  aten.def("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
      .tags(Tag::sizes_results)
      .composite(
          [](const Tensor& self, SymIntList split_size, int64_t dim) { return self.split_with_sizes(split_size, dim); });
  aten.def("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
      .own([](const Tensor& self, SymInt split_size,
              int64_t dim) { return made(self, split_rule("unsafe_split", self, split_size, dim)); },
           [](const Tensor& self, SymInt split_size, int64_t dim) {
             return made(self, split_rule("unsafe_split", self, split_size, dim));
           })
      .tags(Tag::may_alias)
      .gradient("self", "", [](const Gradients& g) { return split_gradient(g, pieces_of(g)); });
  aten.def("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
      .own([](const Tensor& self, SymIntList sizes,
              int64_t dim) { return made(self, split_with_sizes_rule("unsafe_split_with_sizes", self, sizes, dim)); },
           [](const Tensor& self, SymIntList sizes, int64_t dim) {
             return made(self, split_with_sizes_rule("unsafe_split_with_sizes", self, sizes, dim));
           })
      .tags(Tag::sizes_results, Tag::may_alias)
      .gradient("self", "", [](const Gradients& g) { return split_gradient(g, g.sym_ints("split_sizes")); });
  aten.def("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, int64_t chunks, int64_t dim) { return chunk_by("chunk", self, chunks, dim, true); });
  aten.def("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
      .tags(Tag::counts_results, Tag::not_whole)
      .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
        return chunk_by("unsafe_chunk", self, chunks, dim, false);
      });
  aten.def("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
      .tags(Tag::repeatable)
      .view([](const Tensor& self, int64_t dim) { return unbind_rule("unbind", self, dim); })
      .gradient("self", "", unbind_gradient);

  aten.def("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite(tensor_split_sections);
  aten.def("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite(tensor_split_indices);
  aten.def(
          "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> "
          "Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite(tensor_split_by_tensor);
  aten.def("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, int64_t sections) { return numpy_split("hsplit", self, sections, 1); });
  aten.def("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, IntList indices) { return numpy_split("hsplit", self, indices, 1); });
  aten.def("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, int64_t sections) { return numpy_split("vsplit", self, sections, 2); });
  aten.def("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, IntList indices) { return numpy_split("vsplit", self, indices, 2); });
  aten.def("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, int64_t sections) { return numpy_split("dsplit", self, sections, 3); });
  aten.def("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .tags(Tag::counts_results)
      .composite([](const Tensor& self, IntList indices) { return numpy_split("dsplit", self, indices, 3); });
}

}  // namespace calque
