// The hooks of one module. Held by shared_ptr, so that handles can tell whether it still exists.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "calque/nn/module.h"

namespace calque {

struct ModuleHooks {
  template <class F>
  struct Entry {
    uint64_t id;
    F hook;
    bool always_call = false;
  };
  template <class F>
  using List = std::vector<Entry<F>>;

  List<Module::ForwardPreHook> forward_pre;
  List<Module::ForwardHook> forward;
  List<Module::StateDictPreHook> state_dict_pre;
  List<Module::StateDictHook> state_dict_post;
  List<Module::LoadPreHook> load_pre;
  List<Module::LoadPostHook> load_post;
  uint64_t next_id = 1;
  // Answers a call that nobody observes, hooks included; empty: the module itself does.
  std::function<Value(const Values& args, const Kwargs& kwargs)> instead;
};

}  // namespace calque
