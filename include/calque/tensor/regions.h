// Regions of a program in which it runs in another way: gradient mode (GradModeScope, tensor.h) and autocast
// (op/autocast.h). A recorder that keeps such regions in its graph is told where they begin and end. With nobody
// listening a border costs one test of a thread's pointer.
#pragma once

#include "calque/base/thread_context.h"
#include "calque/tensor/device.h"
#include "calque/tensor/dtype.h"

namespace calque {

// What torch.autocast has decided once its defaults are filled in.
struct AutocastRegion {
  DeviceType device = DeviceType::cpu;
  DType dtype = DType::bfloat16;
  bool enabled = true;
  bool cache_enabled = true;
};

class RegionObserver {
 public:
  virtual ~RegionObserver() = default;
  virtual void grad_mode_set(bool enabled) = 0;
  virtual void autocast_entered(const AutocastRegion& region) = 0;
  virtual void autocast_left() = 0;  // the one entered last
};

// Who is told on this thread; null: nobody.
inline RegionObserver* region_observer() { return thread_context().region_observer; }

using RegionObserverScope = ContextScope<&ThreadContext::region_observer>;

// Sets the calling thread's gradient mode for good, as a graph's torch._C._set_grad_enabled does. Programs use
// GradModeScope, which comes down to two of these.
void set_grad_enabled(bool enabled);

}  // namespace calque
