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

#include <memory>
#include <typeinfo>
#include <utility>

#include "calque/nn/convert.h"
#include "calque/nn/module.h"
#include "calque/nn/signature.h"

namespace calque {

namespace nn_detail {

template <class F>
struct Signature;
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> {
  using Result = R;
  static constexpr size_t arity = sizeof...(A);
  using Stored = std::tuple<stored_as<A>...>;
  static constexpr bool as_values = (AsValue<A> && ...) && (std::is_void_v<R> || AsValue<R>);
  static ForwardSignature outlines() { return {{outline<stored_as<A>>()...}, outline<R>(), {}}; }
  // The arguments given, converted as a direct call would convert them.
  template <class... G>
  static Values box(const G&... given) {
    return box(std::tie(given...), std::index_sequence_for<G...>{});
  }

 private:
  template <class T, size_t... i>
  static Values box(const T& given, std::index_sequence<i...>) {
    Values out;
    out.reserve(sizeof...(i));
    (out.push_back(box_one<std::tuple_element_t<i, std::tuple<A...>>>(std::get<i>(given))), ...);
    return out;
  }
  template <class P, class G>
  static Value box_one(const G& given) {
    const P parameter = given;
    return to_value(parameter);
  }
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};
template <class D>
using SignatureOf = Signature<decltype(&D::forward)>;

template <class M>
concept HasForward = requires { &M::forward; };

// A call whose first argument is a tensor knows its line: the tensor arrives as a TensorArg.
template <class... G>
concept StartsWithTensor =
    sizeof...(G) > 0 && std::is_same_v<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<G..., void*>>>, Tensor>;

// Names "<Class>.forward: argument <name>: " in front of what a conversion says.
[[noreturn]] void rethrow_for_argument(Error& error, const Module& module, size_t index);
[[noreturn]] void missing_argument(const Module& module, size_t index);
[[noreturn]] void not_as_values(const Module& module);
[[noreturn]] void called_none(const std::string& name);

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
    using S = nn_detail::SignatureOf<D>;
    D& self = static_cast<D&>(*this);
    if constexpr (S::as_values) {
      if (this->is_watched() || typeid(*this) != typeid(D)) [[unlikely]] {
        if constexpr (std::is_void_v<typename S::Result>) {
          this->call(S::box(given...));
          return;
        } else {
          return from_value<typename S::Result>(this->call(S::box(given...)));
        }
      }
    }
    return self.forward(std::forward<G>(given)...);
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
    if constexpr (requires { D::forward_arguments; }) {
      constexpr size_t arity = nn_detail::SignatureOf<D>::arity;
      static_assert(std::size(D::forward_arguments) >= arity, "one name for each argument of forward");
      return {std::begin(D::forward_arguments), std::begin(D::forward_arguments) + arity};
    } else {
      std::vector<std::string> names;
      for (size_t i = 0; i < nn_detail::SignatureOf<D>::arity; ++i) names.push_back(i ? "arg" + std::to_string(i) : "input");
      return names;
    }
  }

  ForwardSignature forward_signature() const override {
    ForwardSignature signature = nn_detail::SignatureOf<D>::outlines();
    if constexpr (requires { D::forward_defaults(); }) signature.defaults = D::forward_defaults();
    return signature;
  }

  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    using S = nn_detail::SignatureOf<D>;
    if constexpr (S::as_values) {
      const Value* places[S::arity + 1] = {};
      this->bind_arguments(args, kwargs, std::span<const Value*>(places, S::arity));
      size_t given = S::arity;
      while (given > 0 && !places[given - 1]) --given;
      if constexpr (requires { D::forward_defaults(); }) {
        const Values defaults = D::forward_defaults();
        for (size_t i = S::arity - defaults.size(); i < given; ++i)
          if (!places[i]) places[i] = &defaults[i + defaults.size() - S::arity];
        return forward_with<0>(places, given);
      } else {
        return forward_with<0>(places, given);
      }
    } else {
      nn_detail::not_as_values(*this);
    }
  }

 protected:
  Typed() = default;
  Typed(const Typed&) = default;
  std::shared_ptr<Module> copy_self() const override {
    if constexpr (std::is_copy_constructible_v<D>)
      return std::make_shared<D>(static_cast<const D&>(*this));
    else
      return Module::copy_self();
  }

 private:
  // Calls forward with its first `given` arguments, so that C++ supplies the defaults of the rest.
  template <size_t n>
  Value forward_with(const Value* const* places, size_t given) {
    using S = nn_detail::SignatureOf<D>;
    if constexpr (n < S::arity) {
      if (n < given) return forward_with<n + 1>(places, given);
    }
    using Stored = typename S::Stored;
    return [&]<size_t... i>(std::index_sequence<i...>) -> Value {
      D& self = static_cast<D&>(*this);
      if constexpr (requires(Stored& s) { self.forward(std::get<i>(s)...); }) {
        [[maybe_unused]] size_t at = 0;
        [[maybe_unused]] const Value none;
        [[maybe_unused]] const auto convert =
            [&]<size_t k>(std::integral_constant<size_t, k>) -> std::tuple_element_t<k, Stored> {
          at = k;
          return from_value<std::tuple_element_t<k, Stored>>(places[k] ? *places[k] : none);
        };
        const auto converted = [&] {
          try {
            return std::tuple<std::tuple_element_t<i, Stored>...>{convert(std::integral_constant<size_t, i>{})...};
          } catch (Error& error) {
            nn_detail::rethrow_for_argument(error, *this, at);
          }
        };
        std::tuple<std::tuple_element_t<i, Stored>...> stored = converted();
        if constexpr (std::is_void_v<typename S::Result>) {
          self.forward(std::get<i>(stored)...);
          return Value();
        } else {
          return to_value(self.forward(std::get<i>(stored)...));
        }
      } else {
        nn_detail::missing_argument(*this, n);
      }
    }(std::make_index_sequence<n>{});
  }
};

template <class M>
class Child {
 public:
  explicit Child(ModuleSlot& slot) : slot_(&slot), changes_(slot.changes), typed_(dynamic_cast<M*>(slot.module.get())) {}
  Child(const Child& other) : Child(nn_detail::copied_slot(*other.slot_)) {}
  Child& operator=(const Child&) = delete;

  explicit operator bool() const { return slot_->module != nullptr; }
  Module* module() const { return slot_->module.get(); }
  // As the class it was registered with; UserError when it was replaced by another or is None.
  M* operator->() const { return &get(); }
  M& operator*() const { return get(); }
  M& get() const {
    if (slot_->changes == changes_ && typed_) return *typed_;
    if (M* now = dynamic_cast<M*>(slot_->module.get())) return *now;
    if (!slot_->module) nn_detail::called_none(slot_->name);
    throw UserError("the child module " + slot_->name + " was replaced by a " + slot_->module->type_name() +
                    ": it can be called, but its members are others");
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
    if (!slot_->module) [[unlikely]]
      nn_detail::called_none(slot_->name);
    thread_context().reached_slot = slot_->number;
    if constexpr (nn_detail::HasForward<M>) {
      using S = nn_detail::SignatureOf<M>;
      if (slot_->changes == changes_ && typed_) [[likely]]
        return typed_->call_typed(std::forward<G>(given)...);
      if constexpr (S::as_values) {
        if constexpr (std::is_void_v<typename S::Result>)
          slot_->module->call(S::box(given...));
        else
          return from_value<typename S::Result>(slot_->module->call(S::box(given...)));
      } else {
        return get()(std::forward<G>(given)...);
      }
    } else {
      return slot_->module->call(Values{to_value(given)...});
    }
  }

  ModuleSlot* slot_;
  uint64_t changes_;
  M* typed_;  // the module as long as the slot has not changed
};

template <class M, class... A>
Child<M> Module::child(std::string name, A&&... args) {
  return child_module(std::move(name), std::make_shared<M>(std::forward<A>(args)...));
}

template <class M>
Child<M> Module::child_module(std::string name, std::shared_ptr<M> module) {
  std::string key = name;
  register_module(std::move(name), std::move(module));
  return Child<M>(module_slot(key));
}

}  // namespace calque
