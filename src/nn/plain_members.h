// Modules that hold state and belong to nobody: found when they lie among the members of a module that is called. Such a module is
// missing from parameters(), state_dict(), to() and every trace, which is never meant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "calque/nn/module.h"

namespace calque {

struct PlainMembers {
  // A module that has come to hold a tensor or a child, under the address that it has; again does nothing.
  static void note(const Module& module);
  static void move(const Module& from, const Module& to) noexcept;
  static void forget(const Module& module) noexcept;
  // UserError where one of those lies in the object of `size` bytes that the module is. Looks once.
  static void refuse(const Module& module, size_t size) {
    if (!module.looked_for_plain_members_.load(std::memory_order_relaxed)) [[unlikely]]
      look(module, size);
  }
  // Which hooks run around the module's forward, as a number: others have another; 0 without any. For guards.
  static uint64_t forward_hooks(const Module& module);
  static const ModuleHooks* hooks(const Module& module) { return module.hooks_.get(); }
  static ModuleHooks& hooks(Module& module) { return module.hooks(); }

 private:
  static void look(const Module& module, size_t size);
};

}  // namespace calque
