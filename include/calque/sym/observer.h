// SymObserver: told of every symbolic number that the calling thread computes, in the words in which Python would write
// the computation. A recorder uses it to put the arithmetic that a program does with sizes into its graph as it was
// written. With nobody listening it costs one test of a thread's pointer.
#pragma once

#include <span>
#include <variant>

#include "calque/base/thread_context.h"
#include "calque/sym/sym_int.h"

namespace calque {

class TensorImpl;

using SymNumber = std::variant<SymInt, SymFloat, SymBool>;

class SymObserver {
 public:
  virtual ~SymObserver() = default;
  // `function` is Python's name ("operator.add", "torch.sym_max"); `result` is symbolic.
  virtual void computed(const char* function, std::span<const SymNumber> operands, const SymNumber& result) = 0;
  // A tensor was asked how many elements it has, and that is symbolic.
  virtual void counted(const TensorImpl& tensor, SymInt numel) = 0;
};

// Who is told on this thread while in scope; null: nobody.
using SymObserverScope = ContextScope<&ThreadContext::sym_observer>;

}  // namespace calque
