// ModuleObserver: who wants to know of module calls on this thread. A tracer records leaf modules by intercepting their
// call, and module paths by enter and leave. Observers are pushed by RAII scopes; without one a call costs nothing more.
#pragma once

#include <optional>
#include <source_location>
#include <utility>
#include <vector>

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
};

// Switches every observer off for the life of the scope.
class NoModuleObserversScope {
 public:
  NoModuleObserversScope();
  ~NoModuleObserversScope();
  NoModuleObserversScope(const NoModuleObserversScope&) = delete;
  NoModuleObserversScope& operator=(const NoModuleObserversScope&) = delete;

 private:
  std::vector<ModuleObserver*> before_;
};

namespace nn_detail {
extern thread_local constinit int active_observers;
extern thread_local constinit const std::source_location* call_line;  // of the module call that is about to be made
}  // namespace nn_detail
inline bool module_observers_active() { return nn_detail::active_observers != 0; }

// The line of the next module call on this thread. An observer that intercepts the call finds it as the call site; calls
// made inside of the module have lines of their own.
class ModuleCallSite {
 public:
  explicit ModuleCallSite(const std::source_location& where) : before_(nn_detail::call_line) {
    nn_detail::call_line = &where;
  }
  ~ModuleCallSite() { nn_detail::call_line = before_; }
  ModuleCallSite(const ModuleCallSite&) = delete;
  ModuleCallSite& operator=(const ModuleCallSite&) = delete;

 private:
  const std::source_location* before_;
};

}  // namespace calque
