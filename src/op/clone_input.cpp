#include "calque/op/clone_input.h"

#include <unordered_map>

#include "calque/op/aten/empty.h"
#include "calque/op/mode.h"
#include "calque/op/tree.h"

namespace calque {
namespace {

constexpr int64_t line = 32;  // bytes: what vector loads care about

void take_gradient_need(const Tensor& from, const Tensor& to) {
  if (from.is_leaf()) to.impl().requires_grad = from.requires_grad();
}

}  // namespace

Tensor clone_input(const Tensor& t) {
  if (!t.defined() || t.is_fake() || t.device().type != DeviceType::cpu) return t;
  const NoModesScope plain;
  const GradModeScope no_grad(false);
  Tensor copy;
  if (t.numel() == 0 || has_internal_overlap(t)) {
    copy = t.clone();
  } else {
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    const auto bytes = static_cast<int64_t>(item_size(t.dtype()));
    const Tensor room = empty({last + 1 + line}, t.dtype());
    const auto address = [](const Tensor& x) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data())); };
    const int64_t ahead = ((address(t) - address(room)) % line + line) % line;
    copy = room.as_strided(t.sym_sizes(), t.sym_strides(), ahead / bytes);
    copy.copy_(t);
    copy.impl().is_view = false;
  }
  take_gradient_need(t, copy);
  return copy;
}

Value clone_inputs(const Value& inputs) {
  FlatTree flat = tree_flatten(inputs);
  std::unordered_map<const TensorImpl*, Tensor> copies;
  for (Value& leaf : flat.leaves) {
    if (!leaf.is_tensor()) continue;
    auto [at, is_new] = copies.try_emplace(&leaf.to_tensor().impl());
    if (is_new) at->second = clone_input(leaf.to_tensor());
    leaf = at->second;
  }
  return flat.spec.unflatten(flat.leaves);
}

}  // namespace calque
