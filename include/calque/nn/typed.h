// Typed: a module whose forward is an ordinary typed member function, written once:
//
//   struct Mlp : Typed<Mlp> {
//     Child<Linear> up = child<Linear>("up", 4, 8);
//     Tensor forward(const Tensor& x) { return up(x).relu(); }
//   };
//
// m(x) calls forward directly when nobody watches, and through Module::call (hooks, observers, Values) otherwise; a tracer
// then learns the line of the call.
// `static constexpr const char* forward_arguments[] = {"x", "mask"}` names the arguments for keyword calls; C++ default
// arguments serve as defaults. Where one is left out before one that is given, None stands for it, unless
// `static Values forward_defaults()` says otherwise (the last arguments' defaults).
// Child is a module's view of one of its children; a child that was replaced is called through Values, whatever its class.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <typeinfo>
#include <utility>

#include "calque/nn/convert.h"
#include "calque/nn/module.h"
#include "calque/nn/signature.h"

namespace calque {

namespace nn_detail {

// Names "<Class>.forward: argument <name>: " in front of what a conversion says.
[[noreturn]] void rethrow_for_argument(Error& error, const Module& module, size_t index);
[[noreturn]] void missing_argument(const Module& module, size_t index);
[[noreturn]] void not_as_values(const Module& module);
const Value& value_at(const Value* const* places, size_t index);  // None for a place that is empty
// The arguments up to the last one that is given; places before it that are empty get these defaults of the last arguments.
size_t given_arguments(std::span<const Value*> places, const Values& defaults = {});
std::vector<std::string> argument_list(std::span<const char* const> names);
std::vector<std::string> default_argument_list(size_t arity);  // input, arg1, arg2, ...
// Whether a call may go straight to forward: the module has no hooks and observers, and is of this class itself (not of a class
// derived from it). The first call also looks through the module's bytes: UserError for a member that is a module nobody registered.
bool is_forward_alone(const Module& module, const std::type_info& type, size_t bytes);
void refuse_plain_members(const Module& module, size_t bytes);
// The module in a slot, which is the one by which it is reached from now on; UserError when it is None.
Module& reach(const ModuleSlot& slot);
[[noreturn]] void replaced_child(const ModuleSlot& slot);
// A pointer to Module, not to the class: one for each class of modules was a tenth of what a file of models costs to compile.
std::shared_ptr<Module> shared_module(std::unique_ptr<Module> module);

// A forward of this form, with Values on either side. It depends on nothing else, so that all modules of the form share it.
template <class F>
struct BoxedCall;
template <class R, class... A>
struct BoxedCall<R(A...)> {
  using Forward = R (*)(Module&, A...);

  static ForwardSignature outlines() { return {{outline<stored_as<A>>()...}, outline<R>(), {}}; }

  // The module's call, with the arguments converted as a direct call would convert them: hooks and observers see it.
  [[gnu::noinline, gnu::cold]] static R through_values(Module& module, A... given) {
    Values args;
    args.reserve(sizeof...(A));
    (args.push_back(to_value(static_cast<const std::remove_reference_t<A>&>(given))), ...);
    if constexpr (std::is_void_v<R>)
      module.call(std::move(args));
    else
      return from_value<R>(module.call(std::move(args)));
  }

  // forward of the arguments in these places; an empty one is None.
  [[gnu::noinline]] static Value from_values(Module& module, Forward forward, const Value* const* places) {
    return from_values(module, forward, places, std::index_sequence_for<A...>{});
  }

 private:
  template <size_t... i>
  static Value from_values(Module& module, Forward forward, [[maybe_unused]] const Value* const* places,
                           std::index_sequence<i...>) {
    [[maybe_unused]] size_t at = 0;
    const auto converted = [&] {
      try {
        [[maybe_unused]] const auto convert = [&]<class T>(std::type_identity<T>, size_t index) -> T {
          at = index;
          return from_value<T>(value_at(places, index));
        };
        return std::tuple<stored_as<A>...>{convert(std::type_identity<stored_as<A>>(), i)...};
      } catch (Error& error) {
        rethrow_for_argument(error, module, at);
      }
    };
    std::tuple<stored_as<A>...> stored = converted();
    if constexpr (std::is_void_v<R>) {
      forward(module, std::get<i>(stored)...);
      return Value();
    } else {
      return to_value(forward(module, std::get<i>(stored)...));
    }
  }
};

template <class F>
struct Signature;
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> {
  using Result = R;
  using Parameters = std::tuple<A...>;
  static constexpr size_t arity = sizeof...(A);
  static constexpr bool as_values = (AsValue<A> && ...) && (std::is_void_v<R> || AsValue<R>);
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};
template <class D>
using SignatureOf = Signature<decltype(&D::forward)>;

// The first n arguments of a forward.
template <class S, size_t n>
struct FirstArguments {
  template <size_t... i>
  static BoxedCall<typename S::Result(std::tuple_element_t<i, typename S::Parameters>...)> of(std::index_sequence<i...>);
  using Boxed = decltype(of(std::make_index_sequence<n>{}));
  template <class D, size_t... i>
  static consteval bool callable(std::index_sequence<i...>) {
    return requires(D& self, stored_as<std::tuple_element_t<i, typename S::Parameters>>&... given) {
      self.forward(given...);
    };
  }
  template <class D>
  static constexpr bool accepted_by = callable<D>(std::make_index_sequence<n>{});
};
template <class D, size_t n>
using BoxedForward = typename FirstArguments<SignatureOf<D>, n>::Boxed;

// forward as a function of a module of class D, called with its first arguments.
template <class D>
struct ForwardOf {
  template <class R, class... A>
  static R call(Module& module, A... given) {
    return static_cast<D&>(module).forward(static_cast<A&&>(given)...);
  }
  template <class R, class... A>
  static Value from_values(BoxedCall<R(A...)>, Module& module, const Value* const* places) {
    return BoxedCall<R(A...)>::from_values(module, &call<R, A...>, places);
  }
};

// Calls forward with its first `given` arguments, so that C++ supplies the defaults of the rest.
template <class D, size_t n>
Value forward_first(Module& module, const Value* const* places, size_t given) {
  if constexpr (FirstArguments<SignatureOf<D>, n>::template accepted_by<D>) {
    if (given == n) return ForwardOf<D>::from_values(BoxedForward<D, n>{}, module, places);
    if constexpr (n > 0) return forward_first<D, n - 1>(module, places, given);
  }
  missing_argument(module, given);
}

template <class M>
concept HasForward = requires { &M::forward; };
// Does forward take these arguments? Asked first, so that a wrong list is one error and not what follows from it.
template <class M, class... G>
concept TakesArguments = requires(M& module, G&&... given) { module.forward(std::forward<G>(given)...); };

// A call whose first argument is a tensor knows its line: the tensor arrives as a TensorArg.
template <class... G>
concept StartsWithTensor =
    sizeof...(G) > 0 && std::is_same_v<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<G..., void*>>>, Tensor>;

}  // namespace nn_detail

template <class D, class Base = Module>
class Typed : public Base {
 public:
  using Base::Base;

  template <class... G>
  auto operator()(const TensorArg& first, G&&... rest) {
    const ModuleCallSite site(first.where());
    return call_typed(first.get(), std::forward<G>(rest)...);
  }
  template <class... G>
    requires(!nn_detail::StartsWithTensor<G...>)
  auto operator()(G&&... given) {
    return call_typed(std::forward<G>(given)...);
  }
  // What operator() does, without a line.
  template <class... G>
  auto call_typed(G&&... given) {
    constexpr bool taken = nn_detail::TakesArguments<D, G...>;
    static_assert(
        taken, "this module's forward() does not take these arguments: compare their number and types with its declaration");
    if constexpr (taken) {
      if constexpr (nn_detail::SignatureOf<D>::as_values) {
        if (!nn_detail::is_forward_alone(*this, typeid(D), sizeof(D))) [[unlikely]]
          return nn_detail::BoxedForward<D, sizeof...(G)>::through_values(*this, std::forward<G>(given)...);
      }
      return static_cast<D&>(*this).forward(std::forward<G>(given)...);
    }
  }

  // `static constexpr const char* torch_type` names the class as PyTorch does; a class derived from it has its own name.
  std::string type_name() const override {
    if constexpr (requires { D::torch_type; }) {
      bool own = typeid(*this) == typeid(D);
      if constexpr (requires { Base::torch_type; }) own = own && &D::torch_type != &Base::torch_type;
      if (own) return D::torch_type;
    }
    return Module::type_name();
  }

  std::vector<std::string> argument_names() const override {
    constexpr size_t arity = nn_detail::SignatureOf<D>::arity;
    if constexpr (requires { D::forward_arguments; }) {
      static_assert(std::size(D::forward_arguments) >= arity, "one name for each argument of forward");
      return nn_detail::argument_list({std::begin(D::forward_arguments), arity});
    } else {
      return nn_detail::default_argument_list(arity);
    }
  }

  ForwardSignature forward_signature() const override {
    ForwardSignature signature = nn_detail::BoxedForward<D, nn_detail::SignatureOf<D>::arity>::outlines();
    if constexpr (requires { D::forward_defaults(); }) signature.defaults = D::forward_defaults();
    return signature;
  }

  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    using S = nn_detail::SignatureOf<D>;
    nn_detail::refuse_plain_members(*this, sizeof(D));
    if constexpr (S::as_values) {
      const Value* places[S::arity + 1] = {};
      const std::span<const Value*> all(places, S::arity);
      this->bind_arguments(args, kwargs, all);
      if constexpr (requires { D::forward_defaults(); }) {
        const Values defaults = D::forward_defaults();
        return nn_detail::forward_first<D, S::arity>(*this, places, nn_detail::given_arguments(all, defaults));
      } else {
        return nn_detail::forward_first<D, S::arity>(*this, places, nn_detail::given_arguments(all));
      }
    } else {
      nn_detail::not_as_values(*this);
    }
  }

 protected:
  Typed() = default;
  Typed(const Typed&) = default;
  Typed(Typed&&) noexcept = default;
  std::shared_ptr<Module> copy_self() const override {
    if constexpr (std::is_copy_constructible_v<D>)
      return nn_detail::shared_module(std::unique_ptr<Module>(new D(static_cast<const D&>(*this))));
    else
      return Module::copy_self();
  }
};

template <class M>
class Child {
 public:
  explicit Child(ModuleSlot& slot) : Child(slot, dynamic_cast<M*>(slot.module.get())) {}
  Child(ModuleSlot& slot, M* module) : slot_(&slot), changes_(slot.changes), typed_(module) {}  // what is in the slot
  Child(const Child& other) : Child(nn_detail::copied_slot(*other.slot_)) {}
  Child(Child&&) noexcept = default;
  Child& operator=(const Child&) = delete;

  explicit operator bool() const { return slot_->module != nullptr; }
  Module* module() const { return slot_->module.get(); }
  // As the class it was registered with, or what was put in front of it wraps; UserError when it was replaced by another or is None.
  // Calls go to what is in the slot.
  M* operator->() const { return &get(); }
  M& operator*() const { return get(); }
  M& get() const {
    if (slot_->changes == changes_ && typed_) return *typed_;
    for (Module* now = slot_->module.get(); now; now = now->wrapped_module())
      if (M* found = dynamic_cast<M*>(now)) return *found;
    nn_detail::replaced_child(*slot_);
  }

  template <class... G>
  auto operator()(const TensorArg& first, G&&... rest) const {
    const ModuleCallSite site(first.where());
    return call(first.get(), std::forward<G>(rest)...);
  }
  template <class... G>
    requires(!nn_detail::StartsWithTensor<G...>)
  auto operator()(G&&... given) const {
    return call(std::forward<G>(given)...);
  }

 private:
  template <class... G>
  auto call(G&&... given) const {
    Module& module = nn_detail::reach(*slot_);
    if constexpr (nn_detail::HasForward<M>) {
      if (slot_->changes == changes_ && typed_) [[likely]]
        return typed_->call_typed(std::forward<G>(given)...);
      if constexpr (nn_detail::SignatureOf<M>::as_values)
        return nn_detail::BoxedForward<M, sizeof...(G)>::through_values(module, std::forward<G>(given)...);
      else
        return unwrapped()(std::forward<G>(given)...);
    } else if constexpr (std::invocable<M&, G...>) {  // as it is called directly: Sequential gives a tensor
      return from_value<std::invoke_result_t<M&, G...>>(module.call(Values{to_value(given)...}));
    } else {
      return module.call(Values{to_value(given)...});
    }
  }

  // What is called with arguments that are no Values has to be of the class itself.
  M& unwrapped() const {
    if (M* now = dynamic_cast<M*>(slot_->module.get())) return *now;
    nn_detail::replaced_child(*slot_);
  }

  ModuleSlot* slot_;
  uint64_t changes_;
  M* typed_;  // the module as long as the slot has not changed
};

template <class M, class... A>
Child<M> Module::child(std::string_view name, A&&... args) {
  static_assert(std::constructible_from<M, A...>,
                "child<M>(name, ...): the class M has no constructor that takes these arguments");
  M* module = new M(std::forward<A>(args)...);
  return Child<M>(add_child(name, nn_detail::shared_module(std::unique_ptr<Module>(module))), module);
}

template <class M>
Child<M> Module::child_module(std::string_view name, std::shared_ptr<M> module) {
  return Child<M>(add_child(name, std::shared_ptr<Module>(std::move(module))));
}

}  // namespace calque
