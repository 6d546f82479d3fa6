#include "nn/plain_members.h"

#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "calque/base/error.h"
#include "nn/hooks.h"

namespace calque {
namespace {

struct StatefulModules {
  std::mutex mutex;
  std::set<const void*, std::less<>> begins;  // of the Module in each
};

// Never destroyed: static modules end after everything else.
StatefulModules& stateful_modules() {
  static auto* modules = new StatefulModules;
  return *modules;
}

}  // namespace

void PlainMembers::note(const Module& module) {
  if (module.noted_) return;
  StatefulModules& all = stateful_modules();
  const std::lock_guard lock(all.mutex);
  all.begins.insert(&module);
  module.noted_ = true;
}

void PlainMembers::move(const Module& from, const Module& to) noexcept {
  if (!from.noted_) return;
  StatefulModules& all = stateful_modules();
  const std::lock_guard lock(all.mutex);
  auto node = all.begins.extract(&from);
  node.value() = &to;
  all.begins.insert(std::move(node));
  from.noted_ = false;
  to.noted_ = true;
}

void PlainMembers::forget(const Module& module) noexcept {
  if (!module.noted_) return;
  StatefulModules& all = stateful_modules();
  const std::lock_guard lock(all.mutex);
  all.begins.erase(&module);
}

void PlainMembers::look(const Module& module, size_t size) {
  const auto* begin = static_cast<const std::byte*>(dynamic_cast<const void*>(&module));
  std::vector<const Module*> inside;
  {
    StatefulModules& all = stateful_modules();
    const std::lock_guard lock(all.mutex);
    const std::less<const void*> before;
    for (auto it = all.begins.lower_bound(begin); it != all.begins.end() && before(*it, begin + size); ++it)
      if (*it != &module) inside.push_back(static_cast<const Module*>(*it));
  }
  for (const Module* member : inside) {
    if (!member->weak_from_this().expired()) continue;  // registered under a pointer that does not own it
    bool reached = false;
    for (const auto& [path, one] : const_cast<Module&>(module).named_modules()) reached = reached || one == member;
    if (reached) continue;
    const std::string type = member->class_name();
    throw UserError(module.class_name() + " has a " + type +
                    " as a plain member, which it does not know of: parameters(), state_dict(), to() and traces would miss "
                    "it. Register it where it is declared: `Child<" +
                    type + "> name = child<" + type + ">(\"name\", ...);` instead of `" + type + " name`");
  }
  module.looked_for_plain_members_.store(true, std::memory_order_relaxed);
}

uint64_t PlainMembers::forward_hooks(const Module& module) {
  if (!module.hooks_) return 0;
  uint64_t state = 0;
  for (const auto& entry : module.hooks_->forward_pre) state = state * 31 + entry.id;
  for (const auto& entry : module.hooks_->forward) state = state * 37 + entry.id;
  return state;
}

}  // namespace calque
