#include "calque/base/warning.h"

#include <mutex>
#include <utility>

#include "calque/base/duplicate_warnings.h"

namespace calque {
namespace {

struct State {
  std::mutex mutex;
  WarningSink sink;
  DuplicateWarningChecker delivered;
  uint64_t count = 0;
  bool always = false;
};

State& state() {
  static State s;
  return s;
}

}  // namespace

void warn(std::string message) {
  State& s = state();
  WarningSink sink;
  {
    const std::lock_guard lock(s.mutex);
    ++s.count;
    const bool fresh = s.delivered.add(message);
    if (fresh || s.always) sink = s.sink;
  }
  if (sink) sink(message);
}

WarningSink set_warning_sink(WarningSink sink) {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().sink, std::move(sink));
}

void set_warn_always(bool always) {
  const std::lock_guard lock(state().mutex);
  state().always = always;
}

uint64_t warning_count() {
  const std::lock_guard lock(state().mutex);
  return state().count;
}

void reset_warnings() {
  const std::lock_guard lock(state().mutex);
  state().delivered.reset();
  state().count = 0;
}

}  // namespace calque
