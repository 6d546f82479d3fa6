// How the symbolic operations tell the thread's observer what they computed.
#pragma once

#include "calque/sym/observer.h"

namespace calque {

// Gives `result` back; it is told to the observer as function(operands...) when it is symbolic.
template <class R, class... A>
R observed(const char* function, R result, const A&... operands) {
  if (SymObserver* observer = thread_context().sym_observer; observer && result.is_symbolic()) [[unlikely]] {
    const SymNumber all[] = {SymNumber(operands)...};
    observer->computed(function, all, SymNumber(result));
  }
  return result;
}

}  // namespace calque
