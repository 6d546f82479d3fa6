#include "op/rule/indexing.h"
#include "op/rule/factory.h"

#include <algorithm>
#include <string>

#include "calque/sym/shape_env.h"
#include "kernel/cpu/elementwise/masked.h"
#include "op/rule/geometry.h"
#include "op/rule/pointwise.h"

namespace calque::rule {
namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::bool_ || t.dtype() == DType::uint8; }

// The coordinates of a mask's true elements, one tensor a dimension.
void expand_mask(const char* op, const Tensor& self, const Tensor& mask, std::vector<Tensor>& out) {
  const auto at = out.size();
  for (int64_t j = 0; j < mask.dim(); ++j) {
    const auto d = at + static_cast<size_t>(j);
    if (d >= static_cast<size_t>(self.dim()) || !check(mask.sym_sizes()[static_cast<size_t>(j)] == self.sym_sizes()[d]))
      throw UserError(std::string(op) + ": The shape of the mask " + str(mask.sym_sizes()) + " at index " +
                      std::to_string(j) + " does not match the shape of the indexed tensor " + str(self.sym_sizes()) +
                      " at index " + std::to_string(d));
  }
  Tensor coordinates;
  if (mask.is_fake()) {
    const SymInt n = unbacked_size(op, TensorOwner::Unknown::nonzero, {&mask, &self});
    limit_by_numel(n, mask);
    coordinates = make_tensor(Meta{{n, mask.dim()}, {1, n}, DType::int64, mask.device()}, true);
  } else {
    coordinates = kernel::nonzero(mask);
  }
  for (int64_t j = 0; j < mask.dim(); ++j)
    out.push_back(make_view(coordinates, {coordinates.sym_sizes()[0]}, {1},
                            coordinates.sym_storage_offset() + coordinates.sym_strides()[1] * j));
}

// Index tensors with dimensions of size 1 around them, as reshape would stride those.
Tensor surround(const Tensor& index, size_t before, size_t after, const SymInts& sizes) {
  const SymIntList own = index.sym_sizes();
  const SymIntList strides = index.sym_strides();
  const size_t lead = sizes.size() - own.size();
  SymInts s, t;
  SymInts inner(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool broadcast = d < lead || (guard_or(own[d - lead] == 1, false) && !guard_or(sizes[d] == 1, false));
    inner[d] = broadcast ? SymInt(0) : strides[d - lead];
  }
  const SymInt outermost = sizes.empty() ? SymInt(1) : inner[0] * sizes[0];
  const SymInt innermost = sizes.empty() ? SymInt(1) : inner.back();
  for (size_t i = 0; i < before; ++i) s.push_back(1), t.push_back(outermost);
  for (size_t d = 0; d < sizes.size(); ++d) s.push_back(sizes[d]), t.push_back(inner[d]);
  for (size_t i = 0; i < after; ++i) s.push_back(1), t.push_back(innermost);
  return make_view(index, s, t, index.sym_storage_offset());
}

bool strictly_contiguous(const Tensor& t) {
  if (t.is_symbolic()) return false;
  SymInt expected = 1;
  for (size_t d = static_cast<size_t>(t.dim()); d-- > 0;) {
    if (!identical(t.sym_strides()[d], expected)) return false;
    expected *= std::max<int64_t>(1, t.sym_sizes()[d].as_int());
  }
  return true;
}

bool identical_sizes(SymIntList a, SymIntList b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymInt x, SymInt y) { return identical(x, y); });
}

}  // namespace

SymInt unbacked_size(const char* op, TensorOwner::Unknown what, std::initializer_list<const Tensor*> inputs) {
  if (const SymInt numel = (*inputs.begin())->sym_numel(); !numel.is_symbolic() && numel.as_int() == 0) return 0;
  for (const Tensor* t : inputs)
    if (TensorOwner* owner = owner_of(*t))
      if (const Value size = owner->unknown(*t, what); !size.is_none()) return size.to_sym_int();
  return fresh_size(op, inputs);
}

SymInt fresh_size(const char* op, std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* t : inputs)
    if (t->defined() && t->impl().env) return t->impl().env->create_unbacked_size();
  throw UserError(
      ErrorKind::data_dependent,
      std::string(op) +
          ": the size of the result depends on the values of the input, which a fake tensor does not have, and " +
          "there is no shape environment to make a symbol in; trace with dynamic shapes or keep this call out of the trace");
}

void limit_by_numel(SymInt size, const Tensor& of) {
  const auto env = env_of(size);
  if (!env) return;
  const SymInt numel = of.sym_numel();
  const int64_t most = numel.is_symbolic() ? env->range(numel).upper : numel.as_int();
  // Where nothing is known, PyTorch writes the largest size there can be.
  env->constrain_range_for_size(size, 0, std::min(most, ValueRange::unbounded_above - 1));
}

void check_indices(const char* op, const Tensor& self, TensorList indices) {
  int64_t used = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& t = indices[i];
    if (!t.defined()) {
      ++used;
      continue;
    }
    if (!is_mask(t) && t.dtype() != DType::int64 && t.dtype() != DType::int32)
      throw UserError(std::string(op) + ": tensors used as indices must be long, int, byte or bool tensors, but index " +
                      std::to_string(i) + " is " + std::string(name(t.dtype())));
    used += is_mask(t) ? t.dim() : 1;
  }
  if (used > self.dim())
    throw UserError(std::string(op) + ": too many indices for tensor of dimension " + std::to_string(self.dim()) + " (got " +
                    std::to_string(used) + ")");
}

Indexed lay_indices(const char* op, const Tensor& self, TensorList indices) {
  check_indices(op, self, indices);
  std::vector<Tensor> all;
  for (const Tensor& t : indices) {
    if (t.defined() && is_mask(t))
      expand_mask(op, self, t, all);
    else
      all.push_back(t);
  }
  Indexed x;
  x.self = self;
  bool first = true;
  for (const Tensor& t : all) {
    if (!t.defined()) continue;
    const SymIntList sizes = t.sym_sizes();
    if (first) {
      x.index_sizes = SymInts(sizes.begin(), sizes.end());
      first = false;
    } else if (!identical_sizes(x.index_sizes, sizes)) {
      try {
        x.index_sizes = broadcast_sizes(x.index_sizes, sizes, op);
      } catch (const UserError&) {
        throw UserError(std::string(op) + ": shape mismatch: indexing tensors could not be broadcast together with shapes " +
                        str(SymIntList(x.index_sizes)) + ", " + str(sizes));
      }
    }
  }
  size_t begin = 0;
  while (begin < all.size() && !all[begin].defined()) ++begin;
  size_t end = all.size();
  while (end > begin && !all[end - 1].defined()) --end;
  const bool adjacent =
      std::all_of(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const Tensor& t) { return t.defined(); });
  if (first) throw UserError(std::string(op) + ": at least one index must be provided, found none that selects a dimension");
  const SymIntList sizes = self.sym_sizes();
  if (adjacent) {
    x.first = static_cast<int64_t>(begin);
    x.tensors.assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
  } else {
    SymInts s, t;
    all.resize(sizes.size());
    for (const bool indexed : {true, false})
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (all[d].defined() != indexed) continue;
        s.push_back(sizes[d]);
        t.push_back(self.sym_strides()[d]);
        if (indexed) x.tensors.push_back(all[d]);
      }
    x.self = make_view(self, s, t, self.sym_storage_offset());
  }
  const SymIntList own = x.self.sym_sizes();
  const auto from = static_cast<size_t>(x.first);
  const size_t to = from + x.tensors.size();
  x.sizes = SymInts(own.begin(), own.begin() + from);
  for (const SymInt n : x.index_sizes) x.sizes.push_back(n);
  for (size_t d = to; d < own.size(); ++d) x.sizes.push_back(own[d]);
  const auto zero = [](SymInt n) { return guard_or(n == 0, false); };
  if (std::any_of(own.begin() + from, own.begin() + to, zero) &&
      std::none_of(x.index_sizes.begin(), x.index_sizes.end(), zero))
    throw UserError(std::string(op) + ": index is out of bounds for dimension with size 0");
  return x;
}

SymInts selection_strides(const Indexed& x) {
  const auto first = static_cast<size_t>(x.first);
  if (strictly_contiguous(x.self) && std::all_of(x.tensors.begin(), x.tensors.end(), [&](const Tensor& t) {
        return strictly_contiguous(t) && identical_sizes(t.sym_sizes(), x.index_sizes);
      }))
    return contiguous_strides(x.sizes);
  const SymIntList own = x.self.sym_strides();
  const size_t after = own.size() - first - x.tensors.size();
  SymInts strides(own.begin(), own.begin() + first);
  for (size_t i = 0; i < x.index_sizes.size(); ++i) strides.push_back(0);
  for (size_t d = own.size() - after; d < own.size(); ++d) strides.push_back(own[d]);
  std::vector<Tensor> views{make_view(x.self, x.sizes, strides, x.self.sym_storage_offset())};
  for (const Tensor& t : x.tensors) views.push_back(surround(t, first, after, x.index_sizes));
  std::vector<const Tensor*> operands;
  for (const Tensor& t : views) operands.push_back(&t);
  return pointwise_strides(x.sizes, operands);
}

Meta preserved(const Tensor& self) {
  Meta m = self.meta();
  m.strides = preserved_strides(self);
  return m;
}
Meta contiguous(const Tensor& self) { return contiguous(self.sym_sizes(), self.dtype(), self.device()); }
Meta contiguous(SymIntList sizes, DType dtype, Device device) {
  return {SymInts(sizes.begin(), sizes.end()), contiguous_strides(sizes), dtype, device, false};
}

void check_no_overlap(const char* op, const Tensor& written, const Tensor& input) {
  const Overlap o = memory_overlap(written, input);
  if (o == Overlap::partial || o == Overlap::full)
    throw UserError(std::string(op) +
                    ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                    "memory location; clone() one of them first");
}

bool known_different(SymInt a, SymInt b) {
  bool equal = true;
  const SymBool same = a == b;
  return same.is_symbolic() ? same.is_known(equal) && !equal : !same.plain();
}

SmallVector<int64_t, 6> plain(SymIntList sizes) {
  SmallVector<int64_t, 6> out;
  for (const SymInt s : sizes) out.push_back(s.as_int());
  return out;
}

}  // namespace calque::rule
