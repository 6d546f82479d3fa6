#include "calque/base/thread_context.h"

namespace calque::context_detail {

thread_local constinit ThreadContext context;

}  // namespace calque::context_detail
