// What a user asks of leaves, and the hooks of tensors and nodes.
#include <algorithm>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/op/mode.h"

namespace calque {

Tensor grad_of(const Tensor& leaf) {
  const GradState* state = leaf.defined() ? find_grad_state(leaf) : nullptr;
  return !state ? Tensor() : state->retained ? *state->retained : state->grad;
}

void set_grad(const Tensor& leaf, const Tensor& value) {
  if (value.defined()) {
    const auto fail = [](const std::string& what, const std::string& expected, const std::string& found) {
      throw UserError("assigned grad has data of a different " + what + ": expected " + expected + ", found " + found);
    };
    if (value.is_same(leaf)) throw UserError("set_grad: a tensor can't be its own gradient");
    if (value.dtype() != leaf.dtype()) fail("dtype", std::string(name(leaf.dtype())), std::string(name(value.dtype())));
    if (str(value.sym_sizes()) != str(leaf.sym_sizes())) fail("size", str(leaf.sym_sizes()), str(value.sym_sizes()));
  }
  grad_state(leaf).grad = value;
}

void zero_grad(const TensorVector& leaves, bool set_to_none) {
  for (const Tensor& leaf : leaves) {
    if (!leaf.defined() || !find_grad_state(leaf)) continue;
    GradState& state = grad_state(leaf);
    if (!state.grad.defined()) continue;
    if (set_to_none) {
      state.grad = Tensor();
      continue;
    }
    const NoGradGuard off;
    if (state.grad.requires_grad()) state.grad = state.grad.detach();
    state.grad.zero_();
  }
}

namespace {

template <class Hook>
GradHookHandle handle_of(const std::shared_ptr<GradHooks>& hooks, std::vector<Hook> GradHooks::*list, uint64_t id) {
  return GradHookHandle([weak = std::weak_ptr<GradHooks>(hooks), list, id] {
    if (const auto there = weak.lock()) std::erase_if((*there).*list, [&](const Hook& hook) { return hook.id == id; });
  });
}

}  // namespace

void retain_grad(const Tensor& t) {
  if (!t.requires_grad()) throw UserError("can't retain_grad on a tensor that does not require grad");
  const Ref<GradNode> node = grad_fn(t);
  if (!node) return;  // leaves keep it anyway
  GradState& state = grad_state(t);
  if (state.retained) return;
  state.retained = std::make_shared<Tensor>();  // the node must not own its result
  GradHooks& hooks = node->hooks();
  hooks.retaining.push_back({hooks.next_id++, state.result, [kept = state.retained](const Tensor& g) {
                               *kept = kept->defined() ? kept->add(g) : g;
                               return Tensor();
                             }});
}

GradHookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) {
  if (!t.requires_grad()) throw UserError("cannot register a hook on a tensor that doesn't require gradient");
  const Ref<GradNode> node = grad_fn(t);
  GradState& state = grad_state(t);
  if (!node && !state.hooks) state.hooks = std::make_shared<GradHooks>();
  const std::shared_ptr<GradHooks> hooks = node ? node->shared_hooks() : state.hooks;
  const uint64_t id = hooks->next_id++;
  hooks->on_tensors.push_back({id, node ? state.result : 0, std::move(hook)});
  return handle_of(hooks, &GradHooks::on_tensors, id);
}

GradHookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  if (!leaf.requires_grad()) throw UserError("cannot register a hook on a tensor that doesn't require gradient");
  if (grad_fn(leaf)) throw UserError("post accumulate grad hooks cannot be registered on non-leaf tensors");
  GradState& state = grad_state(leaf);
  if (!state.after_accumulation) state.after_accumulation = std::make_shared<GradHooks>();
  const std::shared_ptr<GradHooks> hooks = state.after_accumulation;
  const uint64_t id = hooks->next_id++;
  hooks->on_leaves.push_back({id, std::move(hook)});
  return handle_of(hooks, &GradHooks::on_leaves, id);
}

GradHookHandle register_prehook(const Ref<GradNode>& node, std::function<TensorVector(const TensorVector&)> hook) {
  const std::shared_ptr<GradHooks> hooks = node->shared_hooks();
  const uint64_t id = hooks->next_id++;
  hooks->before.push_back({id, std::move(hook)});
  return handle_of(hooks, &GradHooks::before, id);
}

GradHookHandle register_hook(const Ref<GradNode>& node,
                             std::function<TensorVector(const TensorVector&, const TensorVector&)> hook) {
  const std::shared_ptr<GradHooks> hooks = node->shared_hooks();
  const uint64_t id = hooks->next_id++;
  hooks->after.push_back({id, std::move(hook)});
  return handle_of(hooks, &GradHooks::after, id);
}

SavedTensorHooksScope::SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks) : hooks_(std::move(hooks)) {
  auto& stack = thread_context().saved_hooks;
  stack.insert(stack.size(), &hooks_);
}
SavedTensorHooksScope::~SavedTensorHooksScope() {
  auto& stack = thread_context().saved_hooks;
  stack.erase(stack.find(&hooks_));
}

}  // namespace calque
