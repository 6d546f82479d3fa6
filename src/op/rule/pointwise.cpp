#include "op/rule/pointwise.h"

#include <algorithm>
#include <vector>

namespace calque::rule {
namespace {

bool same_sizes(SymIntList a, SymIntList b) {
  if (a.size() != b.size()) return false;
  for (size_t i = a.size(); i-- > 0;)  // from the last one, as broadcasting does: the order of the guards is PyTorch's
    if (!identical(a[i], b[i]) && !guard_or(a[i] == b[i], false)) return false;
  return true;
}

// The input's strides as the output sees them: 0 where it is broadcast.
SymInts broadcast_strides(const Tensor& t, SymIntList sizes) {
  SymInts out(sizes.size(), 0);
  const SymIntList own = t.sym_sizes();
  const SymIntList strides = t.sym_strides();
  const size_t lead = sizes.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) {
    const bool broadcast = guard_or(own[d] == 1, false) && !guard_or(sizes[lead + d] == 1, false);
    out[lead + d] = broadcast ? SymInt(0) : strides[d];
  }
  return out;
}

}  // namespace

SymInts pointwise_strides(const SymInts& sizes, ListRef<const Tensor*> inputs) {
  const size_t n = sizes.size();
  if (n == 0) return {};
  bool all_same = true;
  const Tensor* first = nullptr;
  for (const Tensor* t : inputs) {
    if (!t->defined()) continue;
    if (!first) first = t;
    all_same = all_same && same_sizes(t->sym_sizes(), sizes);
  }
  if (!first) return contiguous_strides(sizes);
  if (all_same) {
    const auto all = [&](auto&& holds) {
      return std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* t) { return !t->defined() || holds(*t); });
    };
    if (all([](const Tensor& t) { return t.is_contiguous(); })) return contiguous_strides(sizes);
    if (n == 4 && all([](const Tensor& t) { return t.is_contiguous(MemoryFormat::channels_last); }))
      return strides_for(MemoryFormat::channels_last, sizes);
    const SymIntList strides = first->sym_strides();
    if (all([&](const Tensor& t) { return t.is_non_overlapping_and_dense() && same_sizes(t.sym_strides(), strides); }))
      return SymInts(strides.begin(), strides.end());
  }

  std::vector<SymInts> strides;
  for (const Tensor* t : inputs)
    if (t->defined()) strides.push_back(broadcast_strides(*t, sizes));
  // perm[0] is the fastest dimension; start with the last one and move faster ones forward.
  SmallVector<size_t, 8> perm(n);
  for (size_t i = 0; i < n; ++i) perm[i] = n - 1 - i;
  const auto should_swap = [&](size_t a, size_t b) {
    for (const SymInts& s : strides) {
      if (guard_or(s[a] == 0, false) || guard_or(s[b] == 0, false)) continue;
      if (guard_or(s[a] < s[b], false)) return -1;
      if (guard_or(s[a] > s[b], false)) return 1;
      if (guard_or(sizes[a] > sizes[b], false)) return 1;  // equal strides: the smaller dimension goes inside
    }
    return 0;
  };
  for (size_t i = 1; i < n; ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const int order = should_swap(perm[j], perm[at]);
      if (order > 0) {
        std::swap(perm[j], perm[at]);
        at = j;
      } else if (order < 0) {
        break;
      }
    }
  }
  bool inverted = true;
  for (size_t i = 0; i < n; ++i) inverted = inverted && perm[i] == n - 1 - i;
  if (inverted) return contiguous_strides(sizes);
  SymInts out(n);
  SymInt running = 1;
  for (const size_t d : perm) {
    out[d] = running;
    running *= sizes[d];
  }
  return out;
}

Meta pointwise_with_number(const char* op, DType dtype, const Tensor& self) {
  const SymIntList sizes = self.sym_sizes();
  const bool thin = std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.is_symbolic() && s.as_int() <= 1; });
  if (!thin || self.is_symbolic()) return pointwise(op, dtype, {&self});
  static const Tensor number = make_tensor(Meta{{}, {}, DType::int64, Device{}, false}, true);
  Meta m{SymInts(sizes.begin(), sizes.end()), {}, dtype, self.device(), false};
  m.strides = pointwise_strides(m.sizes, std::initializer_list<const Tensor*>{&self, &number});
  return m;
}

Meta pointwise(const char* op, DType dtype, std::initializer_list<const Tensor*> inputs) {
  Meta m;
  m.dtype = dtype;
  bool first = true;
  bool device_from_scalar = true;
  for (const Tensor* t : inputs) {
    if (!t->defined()) continue;
    const SymIntList sizes = t->sym_sizes();
    if (first)
      m.sizes = SymInts(sizes.begin(), sizes.end());
    else if (!same_sizes(m.sizes, sizes))
      m.sizes = broadcast_sizes(m.sizes, sizes, op);
    // A 0-d cpu tensor follows the others' device.
    const bool movable = t->dim() == 0 && t->device().type == DeviceType::cpu;
    if (first || (device_from_scalar && !movable))
      m.device = t->device();
    else if (!movable && !(t->device() == m.device))
      throw UserError(std::string(op) + ": expected all tensors to be on the same device, found " + m.device.str() +
                      " and " + t->device().str());
    device_from_scalar = device_from_scalar && movable;
    first = false;
  }
  m.strides = pointwise_strides(m.sizes, inputs);
  return m;
}

}  // namespace calque::rule
