// Calling a module: observers, hooks, binding of arguments.
#include <algorithm>
#include <array>
#include <exception>

#include "calque/base/warning.h"
#include "calque/nn/hook_kinds.h"
#include "calque/nn/module.h"
#include "calque/nn/signature.h"
#include "calque/nn/typed.h"
#include "nn/call_itself.h"
#include "nn/hooks.h"
#include "nn/plain_members.h"

namespace calque {

namespace nn_detail {

void rethrow_for_argument(Error& error, const Module& module, size_t index) {
  const std::vector<std::string> names = module.argument_names();
  error.prepend(module.class_name() + ".forward: argument '" +
                (index < names.size() ? names[index] : std::to_string(index)) + "': ");
  throw;
}

void missing_argument(const Module& module, size_t index) {
  const std::vector<std::string> names = module.argument_names();
  throw UserError(module.class_name() + ".forward() missing required argument: '" +
                  (index < names.size() ? names[index] : std::to_string(index)) + "'");
}

void not_as_values(const Module& module) {
  throw UserError(module.type_name() +
                  ": forward takes or gives a type that is no Value, so it can only be called directly");
}

const Value& value_at(const Value* const* places, size_t index) {
  static const Value none;
  return places[index] ? *places[index] : none;
}

size_t given_arguments(std::span<const Value*> places, const Values& defaults) {
  size_t given = places.size();
  while (given > 0 && !places[given - 1]) --given;
  const size_t without = places.size() - defaults.size();
  for (size_t i = without; i < given; ++i)
    if (!places[i]) places[i] = &defaults[i - without];
  return given;
}

std::vector<std::string> argument_list(std::span<const char* const> names) { return {names.begin(), names.end()}; }

std::vector<std::string> default_argument_list(size_t arity) {
  std::vector<std::string> names;
  for (size_t i = 0; i < arity; ++i) names.push_back(i ? "arg" + std::to_string(i) : "input");
  return names;
}

void refuse_plain_members(const Module& module, size_t bytes) { PlainMembers::refuse(module, bytes); }

bool is_forward_alone(const Module& module, const std::type_info& type, size_t bytes) {
  PlainMembers::refuse(module, bytes);
  return !module.is_watched() && typeid(module) == type;
}

static void check_child(const ModuleSlot& slot) {
  if (!slot.module) throw UserError("the child module " + slot.name + " is None");
}

Module& reach(const ModuleSlot& slot) {
  check_child(slot);
  thread_context().reached_slot = slot.number;
  return *slot.module;
}

void replaced_child(const ModuleSlot& slot) {
  check_child(slot);
  throw UserError("the child module " + slot.name + " was replaced by a " + slot.module->type_name() +
                  ": it can be called, but its members are others");
}

std::shared_ptr<Module> shared_module(std::unique_ptr<Module> module) { return module; }

}  // namespace nn_detail

ModuleObserverScope::ModuleObserverScope(ModuleObserver& observer) : observer_(&observer) {
  PointerList<ModuleObserver>& observers = thread_context().module_observers;
  observers.insert(observers.size(), &observer);
}

ModuleObserverScope::~ModuleObserverScope() {
  PointerList<ModuleObserver>& observers = thread_context().module_observers;
  size_t at = observers.size();  // its own is the last, unless scopes are closed in another order
  while (at > 0 && observers[at - 1] != observer_) --at;
  if (at > 0) observers.erase(at - 1);
}

NoModuleObserversScope::NoModuleObserversScope() { std::swap(before_, thread_context().module_observers); }
NoModuleObserversScope::~NoModuleObserversScope() { std::swap(before_, thread_context().module_observers); }

namespace {

// Tells the observers there were at the start, also when the call throws.
class Announced {
 public:
  Announced(Module& module, const std::vector<ModuleObserver*>& observers) : module_(module), observers_(observers) {
    for (ModuleObserver* observer : observers_) observer->enter(module_);
  }
  ~Announced() {
    for (size_t i = observers_.size(); i-- > 0;) observers_[i]->leave(module_);
  }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

 private:
  Module& module_;
  const std::vector<ModuleObserver*>& observers_;
};

// Hooks, and forward between them.
Value run_with_hooks(Module& module, Values args, Kwargs kwargs) {
  const ModuleHooks* hooks = PlainMembers::hooks(std::as_const(module));
  if (!hooks) return module.forward_values(args, kwargs);
  // Copies: a hook may remove itself or add others.
  const auto before = hooks->forward_pre;
  const auto after = hooks->forward;
  size_t done = 0;
  Value result;
  try {
    for (const auto& entry : before) {
      if (std::optional<Module::Call> other = entry.hook(module, args, kwargs)) {
        args = std::move(other->args);
        kwargs = std::move(other->kwargs);
      }
    }
    result = module.forward_values(args, kwargs);
    for (const auto& entry : after) {
      ++done;
      if (std::optional<Value> other = entry.hook(module, args, kwargs, result)) result = *std::move(other);
    }
    return result;
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    for (size_t i = done; i < after.size(); ++i) {
      if (!after[i].always_call) continue;
      try {
        if (std::optional<Value> other = after[i].hook(module, args, kwargs, result)) result = *std::move(other);
      } catch (const std::exception& e) {
        warn(
            "module forward hook with `always_call=True` raised an exception that was silenced as another error was raised "
            "in forward: " +
            std::string(e.what()));
      }
    }
    std::rethrow_exception(failure);
  }
}

}  // namespace

Value Module::call(Values args, Kwargs kwargs) {
  if (hooks_ && hooks_->instead && !module_observers_active()) return hooks_->instead(args, kwargs);
  return nn_detail::call_itself(*this, std::move(args), std::move(kwargs));
}

Value nn_detail::call_itself(Module& module, Values args, Kwargs kwargs) {
  if (!module_observers_active()) return run_with_hooks(module, std::move(args), std::move(kwargs));
  const PointerList<ModuleObserver>& now = thread_context().module_observers;
  const std::vector<ModuleObserver*> observers(now.begin(), now.end());
  {
    const std::source_location* line = std::exchange(thread_context().module_call_line, nullptr);
    const CallSite site(line ? *line : std::source_location());
    std::optional<CallSiteScope> scope;
    if (line) scope.emplace(site);
    for (size_t i = observers.size(); i-- > 0;)
      if (std::optional<Value> answer = observers[i]->intercept(module, args, kwargs)) return *std::move(answer);
  }
  const Announced announced(module, observers);
  return run_with_hooks(module, std::move(args), std::move(kwargs));
}

void nn_detail::call_instead(Module& module, std::function<Value(const Values&, const Kwargs&)> function) {
  PlainMembers::hooks(module).instead = std::move(function);
}

std::vector<HookCount> hooks_of(const Module& module) {
  const ModuleHooks* h = PlainMembers::hooks(module);
  if (!h) return {};
  std::vector<HookCount> out;
  const auto add = [&](HookKind kind, size_t count) {
    if (count != 0) out.push_back({kind, count});
  };
  add(HookKind::forward_pre, h->forward_pre.size());
  add(HookKind::forward, h->forward.size());
  add(HookKind::state_dict_pre, h->state_dict_pre.size());
  add(HookKind::state_dict_post, h->state_dict_post.size());
  add(HookKind::load_state_dict_pre, h->load_pre.size());
  add(HookKind::load_state_dict_post, h->load_post.size());
  return out;
}

ForwardSignature Module::forward_signature() const { return {}; }

Value Module::forward_values(const Values&, const Kwargs&) {
  throw UserError("Module [" + class_name() + "] is missing the required \"forward\" function");
}

Value Module::call_with_hooks(Values args, Kwargs kwargs) {
  return run_with_hooks(*this, std::move(args), std::move(kwargs));
}

void Module::bind_arguments(const Values& args, const Kwargs& kwargs, std::span<const Value*> places) const {
  if (args.size() > places.size()) {
    throw UserError(class_name() + ".forward() takes " + std::to_string(places.size()) + " positional argument" +
                    (places.size() == 1 ? "" : "s") + " but " + std::to_string(args.size()) +
                    (args.size() == 1 ? " was given" : " were given"));
  }
  for (size_t i = 0; i < args.size(); ++i) places[i] = &args[i];
  if (kwargs.empty()) return;
  const std::vector<std::string> names = argument_names();
  for (const auto& [name, value] : kwargs) {
    const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at >= places.size()) throw UserError(class_name() + ".forward() got an unexpected keyword argument '" + name + "'");
    if (places[at]) throw UserError(class_name() + ".forward() got multiple values for argument '" + name + "'");
    places[at] = &value;
  }
}

// ---- hooks ----------------------------------------------------------------------------------------------------------

ModuleHooks& Module::hooks() {
  if (!hooks_) hooks_ = std::make_shared<ModuleHooks>();
  return *hooks_;
}

template <class F>
static HookHandle add_hook(const std::shared_ptr<ModuleHooks>& hooks, ModuleHooks::List<F>& list, F hook,
                           bool prepend = false, bool always_call = false) {
  const uint64_t id = hooks->next_id++;
  list.insert(prepend ? list.begin() : list.end(), {id, std::move(hook), always_call});
  return HookHandle(hooks, id);
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook, bool prepend) {
  return add_hook(hooks_, hooks().forward_pre, std::move(hook), prepend);
}
HookHandle Module::register_forward_hook(ForwardHook hook, bool prepend, bool always_call) {
  return add_hook(hooks_, hooks().forward, std::move(hook), prepend, always_call);
}
HookHandle Module::register_state_dict_pre_hook(StateDictPreHook hook) {
  return add_hook(hooks_, hooks().state_dict_pre, std::move(hook));
}
HookHandle Module::register_state_dict_post_hook(StateDictHook hook) {
  return add_hook(hooks_, hooks().state_dict_post, std::move(hook));
}
HookHandle Module::register_load_state_dict_pre_hook(LoadPreHook hook) {
  return add_hook(hooks_, hooks().load_pre, std::move(hook));
}
HookHandle Module::register_load_state_dict_post_hook(LoadPostHook hook) {
  return add_hook(hooks_, hooks().load_post, std::move(hook));
}

void HookHandle::remove() {
  const std::shared_ptr<ModuleHooks> hooks = hooks_.lock();
  if (!hooks) return;
  const auto drop = [this](auto& list) { std::erase_if(list, [this](const auto& entry) { return entry.id == id_; }); };
  drop(hooks->forward_pre);
  drop(hooks->forward);
  drop(hooks->state_dict_pre);
  drop(hooks->state_dict_post);
  drop(hooks->load_pre);
  drop(hooks->load_post);
}

}  // namespace calque
