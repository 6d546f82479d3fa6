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
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/op/gradient.h"
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

// Adds the operator's name and the call's arguments to an error that leaves it.
void explain(UserError& e, const Operator& op, const Values& args);

// Might the argument be for somebody else than the kernel? CallByAddress::is_for_dispatch says whether it is.
template <class T>
bool is_marked(const T& x) {
  if constexpr (std::is_same_v<T, Tensor>)
    return x.defined() && x.impl().is_marked();
  else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : x)
      if (t.defined() && t.impl().is_marked()) return true;
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
    return x && is_marked(*x);
  else
    return false;
}

// How a rule's answer becomes tensors.
template <class M>
struct Outputs;
template <>
struct Outputs<Meta> {
  using type = Tensor;
  static constexpr size_t count = 1;
  static type make(const Meta& m, bool fake) { return allocate(m, fake); }
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
};

// A kernel's parameter for a rule's. K is the kernel's own type of tensors: those of kernel/ take TensorBase, those that are
// written beside their stanza Tensor.
template <class K, class A>
using KernelArg = std::conditional_t<std::is_same_v<A, const Tensor&>, const K&, A>;

template <class Target, class Source>
Target cast(Source f) {
  return reinterpret_cast<Target>(f);
}

// ---- calls by the addresses of the arguments ------------------------------------------------------------------------
// How functions of one signature are called where the signature is not known. What operators of all signatures do alike
// (calls by Values, fake calls, in-place and out= forms) is ordinary code over this, in op/run.cpp.
struct Calls {
  using Function = Operator::ErasedFunction;
  const ArgumentList& arguments;
  // compute(): `meta` for a rule with one output, else `metas`. `outputs` is 0 for a list, whose length the rule decides.
  Meta (*meta)(Function rule, Arguments at) = nullptr;
  void (*metas)(Function rule, Arguments at, std::vector<Meta>& outputs) = nullptr;
  size_t outputs = 1;
  void (*kernel)(Function kernel, Arguments at, TensorList outputs) = nullptr;
  // The other forms: a rule or a kernel, and its result.
  Value (*call)(Function function, Arguments at) = nullptr;
  bool gives_tensor = false;
};

template <class K, class M, class Indices, class... A>
struct ComputeCalls;
template <class K, class M, size_t... i, class... A>
struct ComputeCalls<K, M, std::index_sequence<i...>, A...> {
  static Meta meta(Calls::Function rule, [[maybe_unused]] Arguments at) {
    return cast<Meta (*)(A...)>(rule)(argument_at<A>(at[i])...);
  }
  static void metas(Calls::Function rule, [[maybe_unused]] Arguments at, std::vector<Meta>& outputs) {
    M made = cast<M (*)(A...)>(rule)(argument_at<A>(at[i])...);
    if constexpr (std::is_same_v<M, std::vector<Meta>>)
      outputs = std::move(made);
    else
      outputs.assign(made.begin(), made.end());
  }
  static void kernel(Calls::Function kernel, [[maybe_unused]] Arguments at, TensorList outputs) {
    if constexpr (std::is_same_v<M, std::vector<Meta>>)
      cast<void (*)(KernelArg<K, A>..., TensorList)>(kernel)(argument_at<A>(at[i])..., outputs);
    else
      kernel_for(kernel, at, outputs, std::make_index_sequence<Outputs<M>::count>{});
  }
  template <size_t>
  using Output = const K&;
  template <size_t... o>
  static void kernel_for(Calls::Function kernel, [[maybe_unused]] Arguments at, TensorList outputs,
                         std::index_sequence<o...>) {
    cast<void (*)(KernelArg<K, A>..., Output<o>...)>(kernel)(argument_at<A>(at[i])..., outputs[o]...);
  }
  static constexpr Calls make() {
    Calls calls{ArgumentTypes<A...>::list};
    if constexpr (std::is_same_v<M, Meta>)
      calls.meta = &meta;
    else
      calls.metas = &metas;
    calls.outputs = std::is_same_v<M, std::vector<Meta>> ? 0 : Outputs<M>::count;
    calls.kernel = &kernel;
    return calls;
  }
  static constexpr Calls calls = make();
};

template <class R, class... A>
struct DirectCalls {
  static constexpr Calls calls{.arguments = ArgumentTypes<A...>::list,
                               .call = &BoxedResult<R (*)(A...)>::call,
                               .gives_tensor = std::is_same_v<R, Tensor>};
};

Tensor make_view_of(const Tensor& self, const View& view);
std::vector<Tensor> make_views_of(const Tensor& self, const std::vector<View>& views);

template <class V, class Indices, class... A>
struct ViewCalls;
template <class V, size_t... i, class... A>
struct ViewCalls<V, std::index_sequence<i...>, A...> {
  static Value call(Calls::Function rule, Arguments at) {
    const V view = cast<V (*)(A...)>(rule)(argument_at<A>(at[i])...);
    if constexpr (std::is_same_v<V, View>)
      return Result<Tensor>::box(make_view_of(argument_at<Tensor>(at[0]), view));
    else
      return Result<std::vector<Tensor>>::box(make_views_of(argument_at<Tensor>(at[0]), view));
  }
  static constexpr Calls calls{.arguments = ArgumentTypes<A...>::list, .call = &call};
};

// The forms' code over Calls. `fake`: from the shape rule alone.
Value run_compute(const Operator& op, Arguments at, bool fake);
Value run_view(const Operator& op, Arguments at, bool fake);
Value run_direct(const Operator& op, Arguments at, bool fake);
Value run_mutate(const Operator& op, Arguments at, bool fake);

// ---- typed entries: one instantiation per distinct signature, shared by all operators of it --------------------------
template <class K, class M, class... A>
struct Compute {
  using Out = typename Outputs<M>::type;

  static void run_kernel(const Operator& op, const Out& out, A... args) {
    if constexpr (std::is_same_v<M, std::vector<Meta>>)
      cast<void (*)(KernelArg<K, A>..., TensorList)>(op.kernel())(args..., TensorList(out));
    else if constexpr (std::is_same_v<M, Meta>)
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

  static Out eager(const Operator& op, A... args) {
    Out out = Outputs<M>::make(cast<M (*)(A...)>(op.rule())(args...), false);
    run_kernel(op, out, args...);
    return out;
  }
};

template <class V, class... A>
struct ViewOf;
template <class V, class... A>
struct ViewOf<V, const Tensor&, A...> {
  static auto eager(const Operator& op, const Tensor& self, A... args) {
    const V view = cast<V (*)(const Tensor&, A...)>(op.rule())(self, args...);
    if constexpr (std::is_same_v<V, View>)
      return make_view_of(self, view);
    else
      return make_views_of(self, view);
  }
};

template <class R, class... A>
struct Direct {  // composite bodies and kernels that allocate their own result
  static R eager(const Operator& op, A... args) { return cast<R (*)(A...)>(op.kernel())(args...); }
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
};

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
  // The gradients of the arguments `of`, from what is `kept` (op/gradient.h). Names are separated by spaces.
  template <class Formula>
  OpBuilder& gradient(std::string_view of, std::string_view kept, Formula formula) {
    if constexpr (std::is_convertible_v<Formula, Tensor (*)(const Gradients&)>)
      return add_gradient(of, kept, formula, nullptr);
    else
      return add_gradient(of, kept, nullptr, formula);
  }
  // No result depends smoothly on an argument, or only the named ones do not: "result1".
  OpBuilder& no_gradient(std::string_view results = "");
  // Of an overload for a tensor and a number: typed calls wrap the number and call the overload for two tensors, as Python
  // does.
  OpBuilder& wraps_numbers();
  template <class... T>
  OpBuilder& tags(T... tag) {
    return add_tags(mask(tag...));
  }

 private:
  friend class Library;
  using Erased = Operator::ErasedFunction;
  explicit OpBuilder(Operator& op) : op_(&op) {}

  template <class... T>
  static constexpr uint64_t mask(T... tag) {
    return ((uint64_t{1} << static_cast<unsigned>(tag)) | ... | uint64_t{0});
  }
  OpBuilder& add_tags(uint64_t tags);
  OpBuilder& add_gradient(std::string_view of, std::string_view kept, Tensor (*one)(const Gradients&),
                          TensorVector (*several)(const Gradients&));
  OperatorGradient& made_gradient();
  static void add_fact(Operator& op, Tag tag);
  static void add_fact(Operator& op, PythonAlias alias);
  Operator& add_in_place(std::string_view name);
  Operator& add_out(std::string_view spec);
  Operator& add_derived(Operator::Form form, Schema schema);
  // Checks the parameters against the schema first.
  void set(Operator::Form form, Erased rule, Erased kernel, Erased eager, Operator::Run run, const op_detail::Calls& calls);

  template <class M, class... A, class... P>
  void install_compute(M (*rule)(A...), void (*kernel)(P...)) {
    using Last = std::remove_cvref_t<std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>>;
    using K = std::conditional_t<std::is_same_v<Last, TensorBase>, TensorBase, Tensor>;
    static_assert(sizeof...(P) == sizeof...(A) + op_detail::Outputs<M>::count,
                  "a kernel takes the rule's parameters and then its outputs");
    static_assert(
        []<size_t... i>(std::index_sequence<i...>) {
          return (std::is_same_v<op_detail::KernelArg<K, std::tuple_element_t<i, std::tuple<A...>>>,
                                 std::tuple_element_t<i, std::tuple<P...>>> &&
                  ...);
        }(std::index_sequence_for<A...>{}),
        "a kernel's parameters must have the types of the rule's");
    set(Operator::Form::compute, op_detail::cast<Erased>(rule), op_detail::cast<Erased>(kernel),
        op_detail::cast<Erased>(&op_detail::Compute<K, M, A...>::eager), &op_detail::run_compute,
        op_detail::ComputeCalls<K, M, std::index_sequence_for<A...>, A...>::calls);
  }
  template <class V, class... A>
  void install_view(V (*rule)(A...)) {
    set(Operator::Form::view, op_detail::cast<Erased>(rule), nullptr,
        op_detail::cast<Erased>(&op_detail::ViewOf<V, A...>::eager), &op_detail::run_view,
        op_detail::ViewCalls<V, std::index_sequence_for<A...>, A...>::calls);
    add_tags(mask(Tag::view));
  }
  template <class R, class... A>
  void install_direct(Operator::Form form, R (*rule)(A...), R (*kernel)(A...)) {
    set(form, op_detail::cast<Erased>(rule), op_detail::cast<Erased>(kernel),
        op_detail::cast<Erased>(&op_detail::Direct<R, A...>::eager), &op_detail::run_direct,
        op_detail::DirectCalls<R, A...>::calls);
  }
  template <class... A>
  void install_mutate(void (*rule)(A...), void (*kernel)(A...)) {
    set(Operator::Form::mutate, op_detail::cast<Erased>(rule), op_detail::cast<Erased>(kernel),
        op_detail::cast<Erased>(&op_detail::Mutate<A...>::eager), &op_detail::run_mutate,
        op_detail::DirectCalls<void, A...>::calls);
    add_tags(mask(Tag::in_place));
  }

  Operator* op_;
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

// Loads a shared library and calls its `extern "C" void calque_register_operators()`, which defines operators through Libraries of
// its own. The library stays loaded. UserError when the library or the function is missing.
void load_operator_library(const std::string& path);

// ---- typed calls --------------------------------------------------------------------------------------------------
// A typed call that meets modes or tensors without data, or whose form has no typed entry.
struct CallByAddress {
  const ArgumentList& arguments;
  Arguments at;

  Values box() const;
  bool is_for_dispatch() const;  // modes are active, an argument has no data or wants a gradient
  Value call(const Operator& op, const CallSite& site) const;
  Tensor call_for_tensor(const Operator& op, const CallSite& site) const;
  void explain(UserError& e, const Operator& op) const;
};

// R and A are the types of op/unbox.h in the schema's order; the generated fronts (calque/op/ops.h) spell them out.
template <class R, class... A>
R typed_call(const Operator& op, const CallSite& site, A... args) {
  const void* const at[] = {static_cast<const void*>(std::addressof(args))..., nullptr};
  const CallByAddress by_address{ArgumentTypes<A...>::list, at};
  const Operator& called = op.called();
  const auto eager = op_detail::cast<R (*)(const Operator&, A...)>(called.eager());
  if (eager && !modes_active() &&
      (!(op_detail::is_marked<std::remove_cvref_t<A>>(args) || ... || false) || !by_address.is_for_dispatch())) [[likely]] {
    try {
      return eager(called, args...);
    } catch (UserError& e) {
      by_address.explain(e, op);
      throw;
    }
  }
  if constexpr (std::is_void_v<R>)
    by_address.call(op, site);
  else if constexpr (std::is_same_v<R, Tensor>)
    return by_address.call_for_tensor(op, site);
  else
    return Result<R>::unbox(by_address.call(op, site));
}

// An operator of the table, looked up when it is first called.
class OperatorByName {
 public:
  constexpr explicit OperatorByName(const char* name) : name_(name) {}
  const Operator& get() {
    const Operator* op = op_.load(std::memory_order_acquire);
    return op ? *op : find();
  }

 private:
  const Operator& find();
  const char* name_;
  std::atomic<const Operator*> op_{nullptr};
};

}  // namespace calque
