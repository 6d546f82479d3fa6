#include "calque/op/mode.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/composite_policy.h"
#include "calque/op/owner.h"
#include "calque/sym/shape_env.h"
#include "sym/guard_site.h"

namespace calque {

namespace mode_detail {
thread_local constinit int active_modes = 0;
thread_local constinit CallSite const* site = nullptr;
}  // namespace mode_detail

namespace {

struct Stack {
  std::vector<Mode*> modes;  // ordered by slot, the newest of a slot first
  size_t position = 0;       // modes before this one have handled the call already
};

Stack& stack() {
  thread_local Stack s;
  return s;
}

// Composite operators expand once the call is past the slots that want to see them whole.
constexpr ModeSlot first_below_composite = ModeSlot::functional;

thread_local constinit const CompositePolicy* composite_policy = nullptr;
thread_local constinit const Values* arguments_of_composite = nullptr;
thread_local constinit bool bodies_of_python = false;

// The functional mode wants to see the out= forms: their functional ones may be composite, they write all the same.
bool writes_out(const Operator& op) {
  const auto& arguments = op.schema().arguments;
  return !arguments.empty() && arguments.back().keyword_only && arguments.back().is_written();
}

void set_position(size_t position) {
  Stack& s = stack();
  s.position = position;
  mode_detail::active_modes = static_cast<int>(s.modes.size() - std::min(position, s.modes.size()));
}

class PositionScope {
 public:
  explicit PositionScope(size_t position) : before_(stack().position) { set_position(position); }
  ~PositionScope() { set_position(before_); }
  PositionScope(const PositionScope&) = delete;
  PositionScope& operator=(const PositionScope&) = delete;

 private:
  size_t before_;
};

bool value_is_special(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::tensor: return v.to_tensor().impl().special;
    case Value::Kind::integer: return v.to_sym_int().is_symbolic();
    case Value::Kind::floating: return v.to_sym_float().is_symbolic();
    case Value::Kind::list:
    case Value::Kind::tuple: return std::any_of(v.to_items().begin(), v.to_items().end(), value_is_special);
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::dict:
    case Value::Kind::structure: break;
  }
  return false;
}

bool asks_for_no_data(const Values& args) {
  return std::any_of(args.begin(), args.end(), [](const Value& v) {
    return value_is_special(v) || (v.kind() == Value::Kind::device && v.to_device().type != DeviceType::cpu);
  });
}

TensorOwner* owner_among(const Values& args) {
  for (const Value& v : args) {
    TensorOwner* owner = nullptr;
    if (v.is_tensor())
      owner = owner_of(v.to_tensor());
    else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple)
      owner = owner_among(v.to_items());
    if (owner) return owner;
  }
  return nullptr;
}

Value answer(const Operator& op, const Values& args) {
  if (op.is_composite()) {
    const CompositeBodyScope scope(&args);
    const GuardOperatorScope name(op.name());  // of the guards that the body itself takes
    return op.run_eager(args);
  }
  if (asks_for_no_data(args)) {
    if (TensorOwner* owner = owner_among(args)) return owner->answer(op, args);
    const GuardOperatorScope scope(op.name());
    return op.run_fake(args);
  }
  return op.run_eager(args);
}

}  // namespace

Value dispatch(const Operator& op, const Values& args) {
  Stack& s = stack();
  if (s.position < s.modes.size()) {
    Mode& mode = *s.modes[s.position];
    bool is_for_mode =
        !op.is_composite() || mode.slot() < first_below_composite || (mode.slot() == ModeSlot::functional && writes_out(op));
    if (!is_for_mode && composite_policy && mode.slot() < ModeSlot::fake) [[unlikely]] {
      is_for_mode = composite_policy->keeps_whole(op);
      if (!is_for_mode)
        if (auto result = composite_policy->expand(op, args)) return *std::move(result);
    }
    if (is_for_mode) {
      const PositionScope scope(s.position + 1);
      return mode.call(op, args);
    }
  }
  return answer(op, args);
}

Value call_next(const Operator& op, const Values& args) { return dispatch(op, args); }

Value call(const Operator& op, Values positional, Kwargs keyword) {
  return dispatch(op, bind_arguments(op.schema(), std::move(positional), std::move(keyword)));
}

Value call(std::string_view name, Values positional, Kwargs keyword) {
  return call(get_operator(name), std::move(positional), std::move(keyword));
}

namespace {
[[maybe_unused]] const bool guards_know_their_lines = (set_guard_site([] { return call_site().where; }), true);
}  // namespace

CallSite call_site() { return mode_detail::site ? *mode_detail::site : CallSite(); }

std::optional<Value> Mode::call_function(std::string_view, const Values&, const Kwargs&) { return std::nullopt; }

std::optional<Value> offer_function(std::string_view name, const Values& args, const Kwargs& kwargs) {
  Stack& s = stack();
  for (size_t i = s.position; i < s.modes.size() && s.modes[i]->slot() == ModeSlot::function; ++i) {
    const PositionScope scope(i + 1);
    if (auto result = s.modes[i]->call_function(name, args, kwargs)) return result;
  }
  return std::nullopt;
}

ModeScope::ModeScope(Mode& mode) : mode_(&mode) {
  Stack& s = stack();
  auto at = s.modes.begin() + static_cast<std::ptrdiff_t>(s.position);
  while (at != s.modes.end() && (*at)->slot() < mode.slot()) ++at;
  s.modes.insert(at, &mode);
  set_position(s.position);
}

ModeScope::~ModeScope() {
  Stack& s = stack();
  const auto at = std::find(s.modes.begin() + static_cast<std::ptrdiff_t>(s.position), s.modes.end(), mode_);
  if (at != s.modes.end()) s.modes.erase(at);
  set_position(s.position);
}

CompositePolicyScope::CompositePolicyScope(const CompositePolicy* policy) : before_(composite_policy) {
  composite_policy = policy;
}
CompositePolicyScope::~CompositePolicyScope() { composite_policy = before_; }

const Values* composite_arguments() { return arguments_of_composite; }
CompositeBodyScope::CompositeBodyScope(const Values* arguments) : before_(arguments_of_composite) {
  arguments_of_composite = arguments;
}
CompositeBodyScope::~CompositeBodyScope() { arguments_of_composite = before_; }

bool python_bodies() { return bodies_of_python; }
PythonBodiesScope::PythonBodiesScope() : before_(bodies_of_python) { bodies_of_python = true; }
PythonBodiesScope::~PythonBodiesScope() { bodies_of_python = before_; }

NoModesScope::NoModesScope() : before_(stack().position) { set_position(stack().modes.size()); }
NoModesScope::~NoModesScope() { set_position(before_); }

}  // namespace calque
