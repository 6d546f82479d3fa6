// ModuleObserver: who wants to know of module calls on this thread. A tracer records leaf modules by intercepting their
// call, and module paths by enter and leave. Observers are pushed by RAII scopes; without one a call costs nothing more.
#pragma once

#include <optional>
#include <source_location>
#include <utility>

#include "calque/base/thread_context.h"
#include "calque/op/mode.h"

namespace calque {

class Module;

class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  // Asked before hooks and forward, the innermost observer first; an answer is the result of the call.
  virtual std::optional<Value> intercept(Module&, const Values&, const Kwargs&) { return std::nullopt; }
  // Around a call that nobody intercepted, hooks included; `leave` also when it throws.
  virtual void enter(Module&) {}
  virtual void leave(Module&) {}
};

// Pushes an observer for the life of the scope. The observer must outlive it.
class ModuleObserverScope {
 public:
  explicit ModuleObserverScope(ModuleObserver& observer);
  ~ModuleObserverScope();
  ModuleObserverScope(const ModuleObserverScope&) = delete;
  ModuleObserverScope& operator=(const ModuleObserverScope&) = delete;

 private:
  ModuleObserver* observer_;
};

// Switches every observer off for the life of the scope.
class NoModuleObserversScope {
 public:
  NoModuleObserversScope();
  ~NoModuleObserversScope();
  NoModuleObserversScope(const NoModuleObserversScope&) = delete;
  NoModuleObserversScope& operator=(const NoModuleObserversScope&) = delete;

 private:
  PointerList<ModuleObserver> before_;
};

inline bool module_observers_active() { return !thread_context().module_observers.empty(); }

// The line of the next module call on this thread. An observer that intercepts the call finds it as the call site; calls
// made inside of the module have lines of their own.
class ModuleCallSite : ContextScope<&ThreadContext::module_call_line> {
 public:
  explicit ModuleCallSite(const std::source_location& where) : ContextScope(&where) {}
};

}  // namespace calque
