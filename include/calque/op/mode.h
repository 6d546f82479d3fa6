// The mode stack: who answers an operator call. Modes are pushed by RAII scopes onto the calling thread's stack, each
// into its slot; slots are ordered, push order matters only within a slot. A mode's handler runs with itself and
// everything above it switched off, so operators called inside go to the modes below, and `call_next` hands the same
// call down. Below the last mode, composite operators expand and kernels (or shape rules, for fake tensors) answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/base/call_site.h"
#include "calque/base/thread_context.h"
#include "calque/op/operator.h"

namespace calque {

// From the call downwards. Composite expansion happens between autograd and functional.
enum class ModeSlot : uint8_t { function, pre_dispatch, autocast, autograd, functional, user, recorder, fake };

using Kwargs = std::vector<std::pair<std::string, Value>>;

class Mode {
 public:
  virtual ~Mode() = default;
  virtual ModeSlot slot() const = 0;
  // `args` are complete and in the schema's order.
  virtual Value call(const Operator& op, const Values& args) = 0;
  // Function slot only: a call that is no operator's but that the user wrote as one (x[i], a wrapped function), by
  // Python's name for it. Nothing: its body runs.
  virtual std::optional<Value> call_function(std::string_view name, const Values& args, const Kwargs& kwargs);
  // What the tensors of a file are under this mode. Nothing: what they are without it.
  virtual std::optional<Value> file_content(const Value& content);
};

// Pushes a mode for the life of the scope. The mode must outlive it.
class ModeScope {
 public:
  explicit ModeScope(Mode& mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Mode* mode_;
};

// Switches every mode off for the life of the scope.
class NoModesScope {
 public:
  NoModesScope();
  ~NoModesScope();
  NoModesScope(const NoModesScope&) = delete;
  NoModesScope& operator=(const NoModesScope&) = delete;

 private:
  size_t before_;
};

// A call by operator and Values, from the top of the active stack.
Value call(const Operator& op, Values positional, Kwargs keyword = {});
Value call(std::string_view name, Values positional, Kwargs keyword = {});
// From within a mode's handler: the same call, answered from below.
Value call_next(const Operator& op, const Values& args);
// A call whose arguments are complete already.
Value dispatch(const Operator& op, const Values& args);

// What the function modes make of a call that is no operator's; nothing when there are none or they decline.
std::optional<Value> offer_function(std::string_view name, const Values& args, const Kwargs& kwargs = {});

// What was read from a file, as the modes have it: a fake mode makes the tensors its own.
Value offer_content(Value content);

// Of the outermost call being handled: the line of user code that made it.
CallSite call_site();

// Are calls on tensors that want a gradient recorded?
inline bool records_gradients() { return thread_context().grad_enabled && !thread_context().below_autograd; }

inline bool modes_active() { return thread_context().active_modes != 0; }

// A call inside of another keeps that one's site.
class CallSiteScope : ContextScope<&ThreadContext::call_site> {
 public:
  explicit CallSiteScope(const CallSite& site)
      : ContextScope(thread_context().call_site ? thread_context().call_site : &site) {}
};

}  // namespace calque
