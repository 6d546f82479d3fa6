#include "calque/nn/meta_parameters.h"

namespace calque {

static thread_local bool in_scope = false;

MetaParametersScope::MetaParametersScope() : before_(in_scope) { in_scope = true; }
MetaParametersScope::~MetaParametersScope() { in_scope = before_; }
bool MetaParametersScope::active() { return in_scope; }

}  // namespace calque
