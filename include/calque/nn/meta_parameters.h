// MetaParametersScope: modules that the calling thread makes while it lives get parameters without data (on the meta
// device), so that nothing is allocated or initialised that a checkpoint will bring. Buffers stay real: many are computed
// by the module itself. What a constructor writes into a parameter afterwards goes nowhere; what it assigns to one stays.
#pragma once

#include "calque/base/thread_context.h"

namespace calque {

class MetaParametersScope : ContextSwitch<&ThreadContext::meta_parameters, true> {
 public:
  static bool active() { return thread_context().meta_parameters; }
};

}  // namespace calque
