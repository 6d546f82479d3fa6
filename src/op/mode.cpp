#include "calque/op/mode.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/composite_policy.h"
#include "calque/op/grad_node.h"
#include "calque/op/owner.h"
#include "calque/sym/shape_env.h"

namespace calque {

namespace {

// Composite operators expand once the call is past the slots that want to see them whole.
constexpr ModeSlot first_below_composite = ModeSlot::functional;

// The functional mode wants to see the out= forms: their functional ones may be composite, they write all the same.
bool writes_out(const Operator& op) {
  const auto& arguments = op.schema().arguments;
  return !arguments.empty() && arguments.back().keyword_only && arguments.back().is_written();
}

void set_position(size_t position) {
  ThreadContext& context = thread_context();
  context.mode_position = position;
  context.active_modes = static_cast<int>(context.modes.size() - std::min(position, context.modes.size()));
}

class PositionScope {
 public:
  explicit PositionScope(size_t position) : before_(thread_context().mode_position) { set_position(position); }
  ~PositionScope() { set_position(before_); }
  PositionScope(const PositionScope&) = delete;
  PositionScope& operator=(const PositionScope&) = delete;

 private:
  size_t before_;
};

bool value_is_special(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().impl().special;
  if (v.is_sequence()) return std::any_of(v.to_items().begin(), v.to_items().end(), value_is_special);
  return v.kind() != Value::Kind::boolean && v.expr();
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
  const ThreadContext& context = thread_context();
  const bool meets_mode = context.mode_position < context.modes.size();
  const bool is_recorded = records_gradients() &&
                           !(meets_mode && context.modes[context.mode_position]->slot() <= ModeSlot::autograd) &&
                           any_wants_grad(args);
  if (is_recorded && (op.gradient() || !op.is_composite())) return call_with_gradient(op, args);
  if (meets_mode) {
    Mode& mode = *context.modes[context.mode_position];
    bool is_for_mode =
        !op.is_composite() || mode.slot() < first_below_composite || (mode.slot() == ModeSlot::functional && writes_out(op));
    const CompositePolicy* policy = context.composite_policy;
    if (!is_for_mode && policy && mode.slot() < ModeSlot::fake) [[unlikely]] {
      is_for_mode = !is_recorded && policy->keeps_whole(op);  // what is kept whole has no gradient
      if (!is_for_mode)
        if (auto result = policy->expand(op, args)) return *std::move(result);
    }
    if (is_for_mode) {
      const PositionScope scope(context.mode_position + 1);
      const BelowAutograd below(context.below_autograd || mode.slot() > ModeSlot::autograd);
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

CallSite call_site() { return thread_context().call_site ? *thread_context().call_site : CallSite(); }

std::optional<Value> Mode::call_function(std::string_view, const Values&, const Kwargs&) { return std::nullopt; }
std::optional<Value> Mode::file_content(const Value&) { return std::nullopt; }

std::optional<Value> offer_function(std::string_view name, const Values& args, const Kwargs& kwargs) {
  const PointerList<Mode>& modes = thread_context().modes;
  for (size_t i = thread_context().mode_position; i < modes.size() && modes[i]->slot() == ModeSlot::function; ++i) {
    const PositionScope scope(i + 1);
    if (auto result = modes[i]->call_function(name, args, kwargs)) return result;
  }
  return std::nullopt;
}

Value offer_content(Value content) {
  const PointerList<Mode>& modes = thread_context().modes;
  for (size_t i = thread_context().mode_position; i < modes.size(); ++i)
    if (auto result = modes[i]->file_content(content)) return *std::move(result);
  return content;
}

ModeScope::ModeScope(Mode& mode) : mode_(&mode) {
  ThreadContext& context = thread_context();
  size_t at = context.mode_position;
  while (at < context.modes.size() && context.modes[at]->slot() < mode.slot()) ++at;
  context.modes.insert(at, &mode);
  set_position(context.mode_position);
}

ModeScope::~ModeScope() {
  ThreadContext& context = thread_context();
  const size_t at = context.modes.find(mode_, context.mode_position);
  if (at < context.modes.size()) context.modes.erase(at);
  set_position(context.mode_position);
}

NoModesScope::NoModesScope() : before_(thread_context().mode_position) { set_position(thread_context().modes.size()); }
NoModesScope::~NoModesScope() { set_position(before_); }

}  // namespace calque
