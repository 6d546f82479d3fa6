// Library: the door through which operators enter the table, Calque's own and a user's alike. One `def` is one stanza:
//
//   Library mine("mine");
//   mine.def("scale(Tensor self, float factor) -> Tensor")
//       .compute([](const Tensor& self, double) { return self.meta(); },                       // shape rule
//                [](const Tensor& self, double factor, const Tensor& out) { ... })             // kernel
//       .in_place("scale_").out("scale.out").tags(Tag::pointwise);
//
// Rule and kernel are plain functions or captureless lambdas whose parameters are the schema's (see op/unbox.h); they
// are checked against the schema when the stanza is registered. Registration is not thread-safe against calls of the
// same operator; register before use.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/op/mode.h"
#include "calque/op/operator.h"
#include "calque/op/unbox.h"

namespace calque {

// What the rule of a view operator says: the result shares self's storage.
struct View {
  SymInts sizes;
  SymInts strides;
  SymInt offset;
};

namespace op_detail {

// Outputs for one Meta. A Meta marked undefined gives an undefined tensor (masked-off outputs).
Tensor allocate(const Meta& meta, bool fake);
void mark_requires_grad(const Tensor& t);
// What every in-place write must satisfy: same sizes, castable dtype, no internal overlap, no leaf that requires grad.
void check_in_place(const Operator& op, const Meta& result, const Tensor& self);
void check_writable(const Operator& op, const Tensor& self);
// An out= argument: a dtype that the tags allow, same device; resized to the result's sizes if they differ.
void prepare_out(const Operator& op, const Meta& result, const Tensor& out);
void check_unshared(const Operator& op, const Tensor& written, const Tensor& input);
void check_overlap(const Operator& op, const Tensor& written, const Tensor& input);
bool writes_directly(const Operator& base, const Meta& result, const Tensor& target, bool in_place);
bool shares_memory(const Tensor& a, const Tensor& b);
// Would an out= argument that is an input too get other sizes? Then the kernel runs before it does.
bool resizes(const Meta& result, const Tensor& out);
void write_result(const Tensor& result, const Tensor& target);  // casts and copies; kernels only, no dispatch

// Makes an error that leaves an operator name it, and say the call's arguments.
void explain(UserError& e, const Operator& op, const Values& args);

template <class T>
bool is_special(const T& x) {
  if constexpr (std::is_same_v<T, Tensor>)
    return x.defined() && x.impl().special;
  else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined() && t.impl().special) return true;
    return false;
  } else if constexpr (std::is_same_v<T, SymInt>)
    return x.is_symbolic();
  else if constexpr (std::is_same_v<T, Scalar>)
    return x.is_symbolic();
  else if constexpr (std::is_same_v<T, SymIntList>) {
    for (const SymInt s : x)
      if (s.is_symbolic()) return true;
    return false;
  } else if constexpr (std::is_same_v<T, std::optional<SymInt>> || std::is_same_v<T, std::optional<SymIntList>> ||
                       std::is_same_v<T, std::optional<Scalar>>)
    return x && is_special(*x);
  else
    return false;
}

template <class T>
bool needs_grad(const T& x) {
  if constexpr (std::is_same_v<T, Tensor>)
    return x.defined() && x.impl().requires_grad;
  else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined() && t.impl().requires_grad) return true;
    return false;
  } else
    return false;
}

template <class T>
void check_overlap_with(const Operator& op, const Tensor& written, const T& x) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (x.defined()) check_overlap(op, written, x);
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined()) check_overlap(op, written, t);
  }
}

template <class T>
bool shares_memory_with(const Tensor& written, const T& x) {
  if constexpr (std::is_same_v<T, Tensor>)
    return x.defined() && shares_memory(written, x);
  else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined() && shares_memory(written, t)) return true;
    return false;
  } else
    return false;
}

template <class T>
bool is_same_as(const Tensor& written, const T& x) {
  if constexpr (std::is_same_v<T, Tensor>)
    return x.is_same(written);
  else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.is_same(written)) return true;
    return false;
  } else
    return false;
}

// Tag::unshared_out.
template <class T>
void check_unshared_with(const Operator& op, const Tensor& written, const T& x) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (x.defined()) check_unshared(op, written, x);
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined()) check_unshared(op, written, t);
  }
}

// Tag::dtype_from_out: an argument as the rule and kernel of the out= form see it.
template <class T>
T argument_for_out(const Operator& base, T x, const Tensor& out) {
  if constexpr (std::is_same_v<T, std::optional<DType>>)
    if (!x && out.defined() && base.has_tag(Tag::dtype_from_out)) return out.dtype();
  return x;
}

// How a rule's answer becomes tensors.
template <class M>
struct Outputs;
template <>
struct Outputs<Meta> {
  using type = Tensor;
  static constexpr size_t count = 1;
  static type make(const Meta& m, bool fake) { return allocate(m, fake); }
  template <class F>
  static void each(const type& t, F&& f) {
    f(t);
  }
};
template <size_t N>
struct Outputs<std::array<Meta, N>> {
  template <size_t... i>
  static auto tuple_type(std::index_sequence<i...>) -> std::tuple<std::enable_if_t<(i < N), Tensor>...>;
  using type = decltype(tuple_type(std::make_index_sequence<N>{}));
  static constexpr size_t count = N;
  static type make(const std::array<Meta, N>& m, bool fake) {
    return
        [&]<size_t... i>(std::index_sequence<i...>) { return type{allocate(m[i], fake)...}; }(std::make_index_sequence<N>{});
  }
  template <class F>
  static void each(const type& t, F&& f) {
    std::apply([&](const auto&... x) { (f(x), ...); }, t);
  }
};
template <>
struct Outputs<std::vector<Meta>> {  // Tensor[]: the kernel takes the whole list
  using type = std::vector<Tensor>;
  static constexpr size_t count = 1;
  static type make(const std::vector<Meta>& m, bool fake) {
    type out;
    for (const Meta& x : m) out.push_back(allocate(x, fake));
    return out;
  }
  template <class F>
  static void each(const type& t, F&& f) {
    for (const Tensor& x : t) f(x);
  }
};

// A kernel's parameter for a rule's. K is the kernel's own type of tensors: those of kernel/ take TensorBase, those that are
// written beside their stanza Tensor.
template <class K, class A>
using KernelArg = std::conditional_t<std::is_same_v<A, const Tensor&>, const K&, A>;

template <class Target, class Source>
Target cast(Source f) {
  return reinterpret_cast<Target>(f);
}

// ---- trampolines: one instantiation per distinct signature, shared by all operators of it --------------------------
template <class K, class M, class... A>
struct Compute {
  using Out = typename Outputs<M>::type;
  using Rule = M (*)(A...);

  static void run_kernel(const Operator& op, const Out& out, A... args) {
    if constexpr (std::is_same_v<M, std::vector<Meta>>)
      cast<void (*)(KernelArg<K, A>..., TensorList)>(op.kernel())(args..., TensorList(out));
    else if constexpr (Outputs<M>::count == 1 && std::is_same_v<M, Meta>)
      cast<void (*)(KernelArg<K, A>..., const K&)>(op.kernel())(args..., out);
    else
      run_kernel_on_tuple(op, out, std::make_index_sequence<Outputs<M>::count>{}, args...);
  }
  template <size_t i>
  using Same = const K&;
  template <size_t... i>
  static void run_kernel_on_tuple(const Operator& op, const Out& out, std::index_sequence<i...>, A... args) {
    cast<void (*)(KernelArg<K, A>..., Same<i>...)>(op.kernel())(args..., std::get<i>(out)...);
  }
  static void finish(const Out& out, A... args) {
    if (grad_enabled() && (needs_grad<std::remove_cvref_t<A>>(args) || ... || false)) [[unlikely]]
      Outputs<M>::each(out, mark_requires_grad);
  }

  static Out eager(const Operator& op, A... args) {
    Out out = Outputs<M>::make(cast<Rule>(op.rule())(args...), false);
    run_kernel(op, out, args...);
    finish(out, args...);
    return out;
  }
  static Out fake(const Operator& op, A... args) {
    Out out = Outputs<M>::make(cast<Rule>(op.rule())(args...), true);
    finish(out, args...);
    return out;
  }
};

template <class K, class... A>
struct InPlace;
template <class K, class... A>
struct InPlace<K, const Tensor&, A...> {
  template <bool is_fake>
  static Tensor run(const Operator& op, const Tensor& self, A... args) {
    const Operator& base = *op.base();
    const Meta meta = cast<Meta (*)(const Tensor&, A...)>(base.rule())(self, args...);
    if (base.has_tag(Tag::resizes_self)) return resize_self<is_fake>(op, meta, self, args...);
    check_in_place(op, meta, self);
    if constexpr (!is_fake) {
      const auto kernel = cast<void (*)(const K&, KernelArg<K, A>..., const K&)>(base.kernel());
      if (writes_directly(base, meta, self, true)) {
        (check_overlap_with<std::remove_cvref_t<A>>(op, self, args), ...);
        kernel(self, args..., self);
      } else {
        const Tensor result = make_tensor(meta);
        kernel(self, args..., result);
        write_result(result, self);
      }
    }
    self.storage()->bump_version();
    return self;
  }
  template <bool is_fake>
  static Tensor resize_self(const Operator& op, const Meta& meta, const Tensor& self, A... args) {
    Tensor result;
    if constexpr (!is_fake) {
      result = make_tensor(meta);
      cast<void (*)(const K&, KernelArg<K, A>..., const K&)>(op.base()->kernel())(self, args..., result);
    }
    prepare_out(op, meta, self);
    if constexpr (!is_fake) write_result(result, self);
    self.storage()->bump_version();
    return self;
  }
  static Tensor eager(const Operator& op, const Tensor& self, A... args) { return run<false>(op, self, args...); }
  static Tensor fake(const Operator& op, const Tensor& self, A... args) { return run<true>(op, self, args...); }
};

template <class K, class... A>
struct WithOut {
  template <bool is_fake>
  static Tensor run(const Operator& op, A... args, const Tensor& out) {
    const Operator& base = *op.base();
    const Meta meta = cast<Meta (*)(A...)>(base.rule())(args...);
    if ((is_same_as<std::remove_cvref_t<A>>(out, args) || ... || false) && resizes(meta, out)) [[unlikely]]
      return into_input<is_fake>(op, meta, args..., out);
    prepare_out(op, meta, out);
    if (base.has_tag(Tag::unshared_out)) (check_unshared_with<std::remove_cvref_t<A>>(op, out, args), ...);
    if constexpr (!is_fake) {
      const auto kernel = cast<void (*)(KernelArg<K, A>..., const K&)>(base.kernel());
      const bool shared = (shares_memory_with<std::remove_cvref_t<A>>(out, args) || ... || false);
      if (writes_directly(base, meta, out, false) && (!shared || base.has_tag(Tag::pointwise))) {
        (check_overlap_with<std::remove_cvref_t<A>>(op, out, args), ...);
        kernel(args..., out);
      } else {
        const Tensor result = make_tensor(meta);
        kernel(args..., result);
        write_result(result, out);
      }
    }
    out.storage()->bump_version();
    return out;
  }
  // The result replaces an input of other sizes.
  template <bool is_fake>
  static Tensor into_input(const Operator& op, const Meta& meta, A... args, const Tensor& out) {
    if (op.base()->has_tag(Tag::unshared_out)) (check_unshared_with<std::remove_cvref_t<A>>(op, out, args), ...);
    Tensor result;
    if constexpr (!is_fake) {
      result = make_tensor(meta);
      cast<void (*)(KernelArg<K, A>..., const K&)>(op.base()->kernel())(args..., result);
    }
    prepare_out(op, meta, out);
    if constexpr (!is_fake) write_result(result, out);
    out.storage()->bump_version();
    return out;
  }
  static Tensor eager(const Operator& op, A... args, const Tensor& out) {
    return run<false>(op, argument_for_out<A>(*op.base(), args, out)..., out);
  }
  static Tensor fake(const Operator& op, A... args, const Tensor& out) {
    return run<true>(op, argument_for_out<A>(*op.base(), args, out)..., out);
  }
};

// Several outputs: computed aside, then written; such operators are not the hot ones.
template <class K, size_t N, class... A>
struct WithOuts {
  template <size_t>
  using Out = const Tensor&;
  template <size_t>
  using KernelOut = const K&;
  template <size_t... i>
  struct For {
    template <bool is_fake>
    static auto run(const Operator& op, A... args, Out<i>... outs) {
      const Operator& base = *op.base();
      const auto metas = cast<std::array<Meta, N> (*)(A...)>(base.rule())(args...);
      const auto unshared = [&](const Tensor& out) { (check_unshared_with<std::remove_cvref_t<A>>(op, out, args), ...); };
      if constexpr (!is_fake) {  // an out= argument may be an input too, and resizing it would change that
        const auto resizes_input = [&](const Meta& meta, const Tensor& out) {
          return (is_same_as<std::remove_cvref_t<A>>(out, args) || ... || false) && resizes(meta, out);
        };
        if ((resizes_input(metas[i], outs) || ...)) {
          if (base.has_tag(Tag::unshared_out)) (unshared(outs), ...);
          const std::array<Tensor, N> results{make_tensor(metas[i])...};
          cast<void (*)(KernelArg<K, A>..., KernelOut<i>...)>(base.kernel())(args..., results[i]...);
          ((prepare_out(op, metas[i], outs), write_result(results[i], outs), outs.storage()->bump_version()), ...);
          return std::make_tuple(Tensor(outs)...);
        }
      }
      (prepare_out(op, metas[i], outs), ...);
      if (base.has_tag(Tag::unshared_out)) (unshared(outs), ...);
      if constexpr (!is_fake) {
        const std::array<Tensor, N> results{make_tensor(metas[i])...};
        cast<void (*)(KernelArg<K, A>..., KernelOut<i>...)>(base.kernel())(args..., results[i]...);
        (write_result(results[i], outs), ...);
      }
      (outs.storage()->bump_version(), ...);
      return std::make_tuple(Tensor(outs)...);
    }
    static auto eager(const Operator& op, A... args, Out<i>... outs) { return run<false>(op, args..., outs...); }
    static auto fake(const Operator& op, A... args, Out<i>... outs) { return run<true>(op, args..., outs...); }
  };
  template <size_t... i>
  static For<i...> select(std::index_sequence<i...>);
  using type = decltype(select(std::make_index_sequence<N>{}));
};

template <class V, class... A>
struct ViewOf;
template <class... A>
struct ViewOf<View, const Tensor&, A...> {
  static Tensor eager(const Operator& op, const Tensor& self, A... args) {
    const View v = cast<View (*)(const Tensor&, A...)>(op.rule())(self, args...);
    return make_view(self, v.sizes, v.strides, v.offset);
  }
};
template <class... A>
struct ViewOf<std::vector<View>, const Tensor&, A...> {
  static std::vector<Tensor> eager(const Operator& op, const Tensor& self, A... args) {
    std::vector<Tensor> out;
    for (const View& v : cast<std::vector<View> (*)(const Tensor&, A...)>(op.rule())(self, args...))
      out.push_back(make_view(self, v.sizes, v.strides, v.offset));
    return out;
  }
};

template <class R, class... A>
struct Direct {  // composite bodies and kernels that allocate their own result
  static R eager(const Operator& op, A... args) { return cast<R (*)(A...)>(op.kernel())(args...); }
  static R fake(const Operator& op, A... args) { return cast<R (*)(A...)>(op.rule())(args...); }
};

template <class... A>
struct Mutate;
template <class... A>
struct Mutate<const Tensor&, A...> {
  static Tensor eager(const Operator& op, const Tensor& self, A... args) {
    check_writable(op, self);
    cast<void (*)(const Tensor&, A...)>(op.kernel())(self, args...);
    self.storage()->bump_version();
    return self;
  }
  static Tensor fake(const Operator& op, const Tensor& self, A... args) {
    check_writable(op, self);
    if (op.rule()) cast<void (*)(const Tensor&, A...)>(op.rule())(self, args...);
    self.storage()->bump_version();
    return self;
  }
};

template <class R, class... A>
Value boxed(R (*fn)(const Operator&, A...), const Operator& op, const Values& args) {
  return call_boxed(fn, op, args, std::index_sequence_for<A...>{});
}

}  // namespace op_detail

class OpBuilder {
 public:
  // Rule says the outputs' Meta (Meta, std::array<Meta, N> or std::vector<Meta>), the kernel fills allocated outputs.
  template <class Rule, class Kernel>
  OpBuilder& compute(Rule rule, Kernel kernel) {
    install_compute(+rule, +kernel);
    return *this;
  }
  // Rule says the View (or std::vector<View>) of the first argument.
  template <class Rule>
  OpBuilder& view(Rule rule) {
    install_view(+rule);
    return *this;
  }
  // Written in terms of other operators; expanded in its slot.
  template <class Body>
  OpBuilder& composite(Body body) {
    install_direct(Operator::Form::composite, +body, +body);
    return *this;
  }
  // Kernel returns its own result; rule returns what fake execution should see (same type).
  template <class Rule, class Kernel>
  OpBuilder& own(Rule rule, Kernel kernel) {
    install_direct(Operator::Form::own, +rule, +kernel);
    return *this;
  }
  // Kernel writes self (fill_, normal_); `rule` only checks arguments.
  template <class Rule, class Kernel>
  OpBuilder& mutate(Rule rule, Kernel kernel) {
    install_mutate(+rule, +kernel);
    return *this;
  }
  // The in-place form: "add_.Tensor". For composite operators it computes and copies. Tags and
  // PythonAliases are those of this form alone.
  template <class... T>
  OpBuilder& in_place(std::string_view name, T... fact) {
    Operator& form = add_in_place(name);
    (add_fact(form, std::move(fact)), ...);
    return *this;
  }
  // The out= form: "add.out", or with argument names "max.dim_max(max, max_values)".
  template <class... T>
  OpBuilder& out(std::string_view spec, T... fact) {
    Operator& form = add_out(spec);
    (add_fact(form, std::move(fact)), ...);
    return *this;
  }
  // The Python function that users call it by, where it is not torch.<name>: "torch.nn.functional.linear". `printed` is what
  // PyTorch prints for that function, where it is another name: "torch._C._nn.linear".
  OpBuilder& python(std::string_view function, std::string_view printed = {});
  // A further Python name (see PythonAlias). UserError when another operator has it.
  OpBuilder& python_alias(std::string_view name, std::string_view printed = {});
  // The name of its C++ function and method, where the schema's belongs to another overload with the same C++ parameters.
  OpBuilder& cpp_name(std::string_view) { return *this; }  // for the generator of the typed operators alone
  // Of an overload for a tensor and a number: typed calls wrap the number and call the overload for two tensors, as Python
  // does.
  OpBuilder& wraps_numbers();
  template <class... T>
  OpBuilder& tags(T... tag) {
    (add_tag(*op_, tag), ...);
    return *this;
  }

 private:
  friend class Library;
  explicit OpBuilder(Operator& op) : op_(&op) {}

  // The functions of a derived form, remembered by compute() for in_place() and out().
  struct Derived {
    Operator::ErasedFunction eager = nullptr;
    Operator::Boxed boxed_eager = nullptr;
    Operator::Boxed boxed_fake = nullptr;
  };
  void check_types(const std::vector<std::string_view>& parameter_names) const;
  void set(Operator::Form form, Operator::ErasedFunction rule, Operator::ErasedFunction kernel,
           Operator::ErasedFunction eager, Operator::Boxed boxed_eager, Operator::Boxed boxed_fake);
  static void add_tag(Operator& op, Tag tag);
  static void add_fact(Operator& op, Tag tag) { add_tag(op, tag); }
  static void add_fact(Operator& op, PythonAlias alias);
  Operator& add_in_place(std::string_view name);
  Operator& add_out(std::string_view spec);
  Operator& add_derived(Operator::Form form, Schema schema, const Derived& functions);

  template <class M, class... A, class... P>
  void install_compute(M (*rule)(A...), void (*kernel)(P...)) {
    using Last = std::remove_cvref_t<std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>>;
    using K = std::conditional_t<std::is_same_v<Last, TensorBase>, TensorBase, Tensor>;
    using C = op_detail::Compute<K, M, A...>;
    static_assert(sizeof...(P) == sizeof...(A) + op_detail::Outputs<M>::count,
                  "a kernel takes the rule's parameters and then its outputs");
    static_assert(
        []<size_t... i>(std::index_sequence<i...>) {
          return (std::is_same_v<op_detail::KernelArg<K, std::tuple_element_t<i, std::tuple<A...>>>,
                                 std::tuple_element_t<i, std::tuple<P...>>> &&
                  ...);
        }(std::index_sequence_for<A...>{}),
        "a kernel's parameters must have the types of the rule's");
    check_types({Argument<A>::name...});
    set(
        Operator::Form::compute, op_detail::cast<Operator::ErasedFunction>(rule),
        op_detail::cast<Operator::ErasedFunction>(kernel), op_detail::cast<Operator::ErasedFunction>(&C::eager),
        [](const Operator& op, const Values& v) { return op_detail::boxed(&C::eager, op, v); },
        [](const Operator& op, const Values& v) { return op_detail::boxed(&C::fake, op, v); });
    if constexpr (std::is_same_v<M, Meta>) {
      install_in_place<K, A...>();
      out_ = derived<op_detail::WithOut<K, A...>>();
    } else if constexpr (!std::is_same_v<M, std::vector<Meta>>) {
      out_ = derived<typename op_detail::WithOuts<K, op_detail::Outputs<M>::count, A...>::type>();
    }
  }
  template <class K, class First, class... A>
  void install_in_place() {
    if constexpr (std::is_same_v<First, const Tensor&>) in_place_ = derived<op_detail::InPlace<K, First, A...>>();
  }
  template <class D>
  Derived derived() {
    return {op_detail::cast<Operator::ErasedFunction>(&D::eager),
            [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); },
            [](const Operator& op, const Values& v) { return op_detail::boxed(&D::fake, op, v); }};
  }
  template <class V, class... A>
  void install_view(V (*rule)(A...)) {
    using D = op_detail::ViewOf<V, A...>;
    check_types({Argument<A>::name...});
    const Operator::Boxed boxed = [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); };
    set(Operator::Form::view, op_detail::cast<Operator::ErasedFunction>(rule), nullptr,
        op_detail::cast<Operator::ErasedFunction>(&D::eager), boxed, boxed);
    add_tag(*op_, Tag::view);
  }
  template <class R, class... A>
  void install_direct(Operator::Form form, R (*rule)(A...), R (*kernel)(A...)) {
    using D = op_detail::Direct<R, A...>;
    check_types({Argument<A>::name...});
    set(
        form, op_detail::cast<Operator::ErasedFunction>(rule), op_detail::cast<Operator::ErasedFunction>(kernel),
        op_detail::cast<Operator::ErasedFunction>(&D::eager),
        [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); },
        [](const Operator& op, const Values& v) { return op_detail::boxed(&D::fake, op, v); });
    if constexpr (std::is_same_v<R, Tensor>) {
      in_place_ = derived_of_result<true, A...>();
      out_ = derived_of_result<false, A...>();
    }
  }
  // In-place and out= forms of an operator whose result exists only as a tensor: compute, then write.
  template <bool in_place, class... A>
  Derived derived_of_result();
  template <class... A>
  void install_mutate(void (*rule)(A...), void (*kernel)(A...)) {
    using D = op_detail::Mutate<A...>;
    check_types({Argument<A>::name...});
    set(
        Operator::Form::mutate, op_detail::cast<Operator::ErasedFunction>(rule),
        op_detail::cast<Operator::ErasedFunction>(kernel), op_detail::cast<Operator::ErasedFunction>(&D::eager),
        [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); },
        [](const Operator& op, const Values& v) { return op_detail::boxed(&D::fake, op, v); });
    add_tag(*op_, Tag::in_place);
  }

  Operator* op_;
  Derived in_place_;
  Derived out_;
};

class Library {
 public:
  // `family` groups the operators of one file; users need none.
  explicit Library(std::string_view name_space, std::string_view family = "") : name_space_(name_space), family_(family) {}
  // UserError when the operator exists already or the text is no schema.
  OpBuilder def(std::string_view schema);
  // Another name for an operator: "arccos" for "acos" gives every overload of acos a second one, a composite that calls it.
  // The in-place operator is another: "arccos_" for "acos_". UserError when there is no such target yet.
  void alias(std::string_view name, std::string_view target);

 private:
  std::string name_space_;
  std::string family_;
};

// Loads a shared library that defines `extern "C" void calque_register(calque::Library&)`-style entry point
// `calque_register_operators()` and calls it. The library stays loaded.
void load_operator_library(const std::string& path);

// ---- typed calls --------------------------------------------------------------------------------------------------
// R and A are the types of op/unbox.h in the schema's order; the generated fronts (calque/op/ops.h) spell them out.
template <class R, class... A>
R typed_call(const Operator& op, const CallSite& site, A... args) {
  if (modes_active() || (op_detail::is_special<std::remove_cvref_t<A>>(args) || ... || false)) [[unlikely]] {
    const CallSiteScope scope(site);
    if constexpr (std::is_void_v<R>)
      dispatch(op, Values{Argument<A>::box(args)...});
    else
      return Result<R>::unbox(dispatch(op, Values{Argument<A>::box(args)...}));
  } else {
    try {
      const Operator& called = op.called();
      return op_detail::cast<R (*)(const Operator&, A...)>(called.eager())(called, args...);
    } catch (UserError& e) {
      op_detail::explain(e, op, Values{Argument<A>::box(args)...});
      throw;
    }
  }
}

template <bool is_in_place, class... A>
struct DerivedOfResult;
template <class... A>
struct DerivedOfResult<true, const Tensor&, A...> {
  static Tensor eager(const Operator& op, const Tensor& self, A... args) {
    const Tensor result = typed_call<Tensor, const Tensor&, A...>(*op.base(), CallSite(), self, args...);
    op_detail::check_in_place(op, result.meta(), self);
    return dispatch(get_operator("aten::copy_"), {self, result, false}).to_tensor();
  }
};
template <class... A>
struct DerivedOfResult<false, A...> {
  static Tensor eager(const Operator& op, A... args, const Tensor& out) {
    const Tensor result = typed_call<Tensor, A...>(*op.base(), CallSite(), args...);
    op_detail::prepare_out(op, result.meta(), out);
    if (op.base()->has_tag(Tag::unshared_out)) (op_detail::check_unshared_with<std::remove_cvref_t<A>>(op, out, args), ...);
    return dispatch(get_operator("aten::copy_"), {out, result, false}).to_tensor();
  }
};

template <bool is_in_place, class... A>
OpBuilder::Derived OpBuilder::derived_of_result() {
  if constexpr (is_in_place) {
    if constexpr (!std::is_same_v<std::tuple_element_t<0, std::tuple<A..., void>>, const Tensor&>)
      return {};
    else {
      using D = DerivedOfResult<true, A...>;
      const Operator::Boxed boxed = [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); };
      return {op_detail::cast<Operator::ErasedFunction>(&D::eager), boxed, boxed};
    }
  } else {
    using D = DerivedOfResult<false, A...>;
    const Operator::Boxed boxed = [](const Operator& op, const Values& v) { return op_detail::boxed(&D::eager, op, v); };
    return {op_detail::cast<Operator::ErasedFunction>(&D::eager), boxed, boxed};
  }
}

}  // namespace calque
