// CompositePolicy: what becomes of a composite operator on its way down to the functional mode and the recorder. Without
// one it expands by its own body; with one it may stay whole, or expand by another body. Fake execution and kernels
// always use its own.
#pragma once

#include <optional>

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
class CompositePolicyScope {
 public:
  explicit CompositePolicyScope(const CompositePolicy* policy);
  ~CompositePolicyScope();
  CompositePolicyScope(const CompositePolicyScope&) = delete;
  CompositePolicyScope& operator=(const CompositePolicyScope&) = delete;

 private:
  const CompositePolicy* before_;
};

// The arguments of the composite operator whose body is running; null outside of one. ATen's bodies are written in C++,
// where a number beside a tensor calls the overload for numbers; what Python writes calls the one for tensors, also where
// a body hands on what it was given.
const Values* composite_arguments();
class CompositeBodyScope {
 public:
  explicit CompositeBodyScope(const Values* arguments);
  ~CompositeBodyScope();
  CompositeBodyScope(const CompositeBodyScope&) = delete;
  CompositeBodyScope& operator=(const CompositeBodyScope&) = delete;

 private:
  const Values* before_;
};

// Some composite operators have a second body in PyTorch, written in Python, which traces with symbolic sizes and exports
// use: dropout is native_dropout, batch_norm says whether it writes its statistics. In scope it is used for all sizes.
bool python_bodies();
class PythonBodiesScope {
 public:
  PythonBodiesScope();
  ~PythonBodiesScope();
  PythonBodiesScope(const PythonBodiesScope&) = delete;
  PythonBodiesScope& operator=(const PythonBodiesScope&) = delete;

 private:
  bool before_;
};

}  // namespace calque
