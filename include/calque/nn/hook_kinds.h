// Which hooks a module has, by kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calque {

class Module;

enum class HookKind : uint8_t {
  forward_pre,
  forward,
  state_dict_pre,
  state_dict_post,
  load_state_dict_pre,
  load_state_dict_post,
};
struct HookCount {
  HookKind kind;
  size_t count;
  bool operator==(const HookCount&) const = default;
};
// Of the module itself, not of its children; kinds without hooks are left out.
std::vector<HookCount> hooks_of(const Module& module);

}  // namespace calque
