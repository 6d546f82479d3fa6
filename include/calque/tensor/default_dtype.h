// DefaultDTypeScope: the default dtype of the calling thread while it lives; other threads keep theirs. What models are made
// under when they are loaded in bfloat16, so that the process's default is not touched.
#pragma once

#include "calque/base/thread_context.h"
#include "calque/tensor/dtype.h"

namespace calque {

class DefaultDTypeScope {
 public:
  explicit DefaultDTypeScope(DType dtype);  // UserError unless it is a floating-point dtype that set_default_dtype takes

 private:
  ContextScope<&ThreadContext::default_dtype> scope_;
};

}  // namespace calque
