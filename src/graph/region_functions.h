// The functions by which a graph switches gradient mode and autocast: torch._C._set_grad_enabled, _enter_autocast,
// _exit_autocast. They change the calling thread; what a run that failed has left switched, RegionGuard puts back.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "calque/graph/function.h"
#include "calque/graph/node.h"

namespace calque {

inline constexpr const char* set_grad_enabled_name = "torch._C._set_grad_enabled";
inline constexpr const char* enter_autocast_name = "torch.amp.autocast_mode._enter_autocast";
inline constexpr const char* exit_autocast_name = "torch.amp.autocast_mode._exit_autocast";

bool calls_set_grad_enabled(const Node& n);
bool calls_enter_autocast(const Node& n);
bool calls_exit_autocast(const Node& n);
inline bool switches_region(const Node& n) {
  return calls_set_grad_enabled(n) || calls_enter_autocast(n) || calls_exit_autocast(n);
}

const std::vector<std::pair<const char*, Function::Body>>& region_functions();

class RegionGuard {
 public:
  RegionGuard();
  ~RegionGuard();
  RegionGuard(const RegionGuard&) = delete;
  RegionGuard& operator=(const RegionGuard&) = delete;
  void done() { done_ = true; }  // the run came to its end: what it has switched stays

 private:
  bool grad_before_;
  size_t depth_before_;
  bool done_ = false;
};

// "cpu", dtype or None, enabled, cache enabled or None: the first four arguments of _enter_autocast and of
// wrap_with_autocast.
struct AutocastArguments {
  explicit AutocastArguments(const Values& args);
  DeviceType device;
  std::optional<DType> dtype;
  bool enabled;
  std::optional<bool> cache_enabled;
};

}  // namespace calque
