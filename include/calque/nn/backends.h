// torch.backends.cudnn.enabled: what layers hand to operators that take `cudnn_enable`. It changes no result here, but graphs
// show it. On by default; a thread's own.
#pragma once

#include "calque/base/thread_context.h"

namespace calque {

inline bool cudnn_enabled() { return thread_context().cudnn_enabled; }
using CudnnScope = ContextScope<&ThreadContext::cudnn_enabled>;

}  // namespace calque
