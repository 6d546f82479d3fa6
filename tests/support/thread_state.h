// What the calling thread has switched on, as a value: a test compares what was there before with what is there afterwards.
#pragma once

#include <vector>

#include "calque/base/thread_context.h"

namespace calque::test {

struct ThreadState {
  ThreadState() { switches.reached_slot = 0; }  // no switch but a mark, which every call of a module leaves
  ThreadSwitches switches = thread_context();
  std::vector<Mode*> modes{thread_context().modes.begin(), thread_context().modes.end()};
  std::vector<ModuleObserver*> observers{thread_context().module_observers.begin(), thread_context().module_observers.end()};
  bool operator==(const ThreadState&) const = default;
};

}  // namespace calque::test
