// Deep copies of modules. A copy constructor of a module runs only in here: the base copies the slots and notes which
// slot stands for which, the handles among the members look theirs up.
#include <cstring>
#include <unordered_map>

#include "calque/base/thread_context.h"
#include "calque/nn/module.h"
#include "calque/op/owner.h"
#include "nn/hooks.h"
#include "nn/plain_members.h"

namespace calque {

// What a deep copy has made so far.
struct ModuleCopies {
  const std::function<Tensor(const Tensor&)>& copy_tensor;
  std::unordered_map<const Module*, std::shared_ptr<Module>> modules;
  std::unordered_map<const TensorImpl*, Tensor> tensors;
  std::unordered_map<const Storage*, Ref<Storage>> storages;
  std::unordered_map<const TensorSlot*, TensorSlot*> tensor_slots;
  std::unordered_map<const ModuleSlot*, ModuleSlot*> module_slots;

  Ref<Storage> copy(const Ref<Storage>& storage) {
    Ref<Storage>& copied = storages[storage.get()];
    if (copied) return copied;
    if (!storage->has_data()) return copied = Storage::without_data(storage->nbytes());
    copied = Storage::allocate(storage->nbytes());
    if (storage->nbytes()) std::memcpy(copied->data(), storage->data(), storage->nbytes());
    return copied;
  }

  Tensor copy(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const auto [at, fresh] = tensors.try_emplace(&tensor.impl());
    if (!fresh) return at->second;
    if (copy_tensor) return at->second = copy_tensor(tensor);
    const TensorImpl& from = tensor.impl();
    Tensor made(Ref<TensorImpl>(new TensorImpl(copy(from.storage), tensor.meta(), from.offset)));
    made.impl().take_layout(from);
    made.impl().special = from.special;
    made.impl().requires_grad = from.requires_grad;
    made.impl().extra = extra_for_copy(from);
    return at->second = made;
  }
};

Module::Module(const Module& other) : std::enable_shared_from_this<Module>(), training_(other.training_) {
  if (!thread_context().module_copies) throw UserError("a module cannot be copied by a C++ copy: use deep_copy()");
  ModuleCopies& m = *thread_context().module_copies;
  const auto copy_slots = [&m](const std::vector<std::unique_ptr<TensorSlot>>& from,
                               std::vector<std::unique_ptr<TensorSlot>>& to) {
    for (const auto& slot : from) {
      to.push_back(std::make_unique<TensorSlot>(
          TensorSlot{slot->name, m.copy(slot->tensor), slot->is_parameter, slot->persistent, slot->is_constant}));
      m.tensor_slots[slot.get()] = to.back().get();
    }
  };
  copy_slots(other.parameters_, parameters_);
  copy_slots(other.buffers_, buffers_);
  copy_slots(other.constants_, constants_);
  copy_slots(other.deleted_tensors_, deleted_tensors_);
  const auto copy_children = [&m](const std::vector<std::unique_ptr<ModuleSlot>>& from,
                                  std::vector<std::unique_ptr<ModuleSlot>>& to) {
    for (const auto& slot : from) {
      to.push_back(std::make_unique<ModuleSlot>(ModuleSlot{slot->name, slot->module ? slot->module->deep_copy() : nullptr}));
      m.module_slots[slot.get()] = to.back().get();
    }
  };
  copy_children(other.children_, children_);
  copy_children(other.deleted_modules_, deleted_modules_);
  if (other.noted_) PlainMembers::note(*this);
  if (other.hooks_) hooks_ = std::make_shared<ModuleHooks>(*other.hooks_);
}

std::shared_ptr<Module> Module::copy_self() const {
  throw UserError("a " + type_name() + " cannot be copied: its class has no copy constructor or does not derive from Typed");
}

std::shared_ptr<Module> Module::deep_copy(const std::function<Tensor(const Tensor&)>& copy_tensor) const {
  if (ModuleCopies* copies = thread_context().module_copies) {
    std::shared_ptr<Module>& made = copies->modules[this];
    if (!made) {
      std::shared_ptr<Module> copy = copy_self();
      copies->modules[this] = copy;
      return copy;
    }
    return made;
  }
  ModuleCopies mine{copy_tensor, {}, {}, {}, {}, {}};
  const ContextScope<&ThreadContext::module_copies> scope(&mine);
  return copy_self();
}

TensorMember::TensorMember(const TensorMember& other) : slot_(other.slot_) {
  const ModuleCopies* copies = thread_context().module_copies;
  if (!copies) return;
  const auto at = copies->tensor_slots.find(other.slot_);
  if (at == copies->tensor_slots.end())
    throw UserError("the tensor " + other.slot_->name + " belongs to another module than the one that is copied");
  slot_ = at->second;
}

ModuleSlot& nn_detail::copied_slot(ModuleSlot& original) {
  const ModuleCopies* copies = thread_context().module_copies;
  if (!copies) return original;
  const auto at = copies->module_slots.find(&original);
  if (at == copies->module_slots.end())
    throw UserError("the child module " + original.name + " belongs to another module than the one that is copied");
  return *at->second;
}

}  // namespace calque
