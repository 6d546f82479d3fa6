#include "calque/nn/backends.h"

namespace calque {

static thread_local bool enabled_here = true;

bool cudnn_enabled() { return enabled_here; }
CudnnScope::CudnnScope(bool enabled) : before_(enabled_here) { enabled_here = enabled; }
CudnnScope::~CudnnScope() { enabled_here = before_; }

}  // namespace calque
