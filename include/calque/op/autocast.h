// Autocast: a region in which operators that gain from it compute in a narrower floating type and those that would lose
// compute in float32, as torch.autocast does on the CPU. An operator's stanza says what becomes of it (Tag::autocast_lower
// and its neighbours). Scopes nest; one that is not enabled switches casting off inside another. Belongs to the calling
// thread.
#pragma once

#include <optional>

#include "calque/op/mode.h"
#include "calque/tensor/regions.h"

namespace calque {

class AutocastScope {
 public:
  // Without a dtype the one of the scope around it, at first bfloat16; without a cache setting that of the scope around
  // it. A dtype that autocast does not know and a device that is not there switch casting off, with a warning.
  explicit AutocastScope(DeviceType device = DeviceType::cpu, std::optional<DType> dtype = {}, bool enabled = true,
                         std::optional<bool> cache_enabled = {});
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastSetting before_;
  DeviceType device_;
  bool cache_before_;
  bool busy_before_;
  std::optional<ModeScope> mode_;
};

// Casts of parameters are not remembered from one call to the next while in scope; a trace would keep the first alone.
using NoAutocastCacheScope = ContextSwitch<&ThreadContext::autocast_cache_enabled, false>;

// The state of the calling thread for a device.
AutocastRegion autocast_region(DeviceType device = DeviceType::cpu);

enum class AutocastPolicy : uint8_t { none, lower_precision, float32, promote };
AutocastPolicy autocast_policy(const Operator& op);

}  // namespace calque
