// CompositePolicy: what becomes of a composite operator on its way down to the functional mode and the recorder. Without
// one it expands by its own body; with one it may stay whole, or expand by another body. Fake execution and kernels
// always use its own.
#pragma once

#include <optional>

#include "calque/base/thread_context.h"
#include "calque/op/operator.h"

namespace calque {

class CompositePolicy {
 public:
  virtual ~CompositePolicy() = default;
  virtual bool keeps_whole(const Operator& op) const = 0;
  // What the call gives by another body; nothing: by its own.
  virtual std::optional<Value> expand(const Operator& op, const Values& args) const = 0;
};

// The calling thread's policy for the life of the scope; null for none. The policy must outlive it.
using CompositePolicyScope = ContextScope<&ThreadContext::composite_policy>;

// The arguments of the composite operator whose body is running; null outside of one. ATen's bodies are written in C++,
// where a number beside a tensor calls the overload for numbers; what Python writes calls the one for tensors, also where
// a body hands on what it was given.
inline const Values* composite_arguments() { return thread_context().composite_arguments; }
using CompositeBodyScope = ContextScope<&ThreadContext::composite_arguments>;

// Some composite operators have a second body in PyTorch, written in Python, which traces with symbolic sizes and exports
// use: dropout is native_dropout, batch_norm says whether it writes its statistics. In scope it is used for all sizes.
inline bool python_bodies() { return thread_context().python_bodies; }
using PythonBodiesScope = ContextSwitch<&ThreadContext::python_bodies, true>;

}  // namespace calque
