// The mode stack: who answers an operator call. Modes are pushed by RAII scopes onto the calling thread's stack, each
// into its slot; slots are ordered, push order matters only within a slot. A mode's handler runs with itself and
// everything above it switched off, so operators called inside go to the modes below, and `call_next` hands the same
// call down. Below the last mode, composite operators expand and kernels (or shape rules, for fake tensors) answer.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

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

// How the user wrote an operator's call: add(a, b) or a.add(b). (a + b is offered as operator.add before it is one.)
enum class CallForm : uint8_t { function, method };
struct CallSite {
  CallSite(std::source_location where = {}, CallForm form = CallForm::function) : where(where), form(form) {}
  std::source_location where;
  CallForm form;
};
// Of the outermost call being handled: the line of user code that made it.
CallSite call_site();

namespace mode_detail {
extern thread_local constinit int active_modes;  // modes that a call would meet now
extern thread_local constinit CallSite const* site;
}  // namespace mode_detail

inline bool modes_active() { return mode_detail::active_modes != 0; }

class CallSiteScope {
 public:
  explicit CallSiteScope(const CallSite& site) : before_(mode_detail::site) {
    if (!before_) mode_detail::site = &site;
  }
  ~CallSiteScope() { mode_detail::site = before_; }
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  const CallSite* before_;
};

}  // namespace calque
