// Tracer: runs a module's forward, or a function, on proxies, and records what the user wrote as a graph, as torch.fx's
// symbolic_trace does: torch.relu, operator.add, leaf modules by path, parameters as get_attr.
//
//   std::shared_ptr<GraphModule> gm = symbolic_trace(*model);
//
// A proxy is a Tensor of which nothing is known but its node; its sizes are symbols, recorded as calls of size(). With
// example inputs proxies carry fake values, so that a program may look at dimensions, sizes and dtypes. Control flow on
// anything else is a UserError that names the value, its expression and its line. A Tracer serves one trace at a time,
// on one thread; derive from it to change what is a leaf, what a module's call becomes, what an argument becomes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calque/graph/graph.h"
#include "calque/graph/graph_module.h"
#include "calque/nn/observer.h"
#include "calque/nn/signature.h"
#include "calque/op/mode.h"

namespace calque {

class Expr;
class FakeMode;
class ShapeEnv;

// Stands in a concrete argument for a leaf that stays an input.
Value PH();
bool is_PH(const Value& v);

struct TraceInputs {
  // By name: the graph is made for this value, and checks it where it can. A tree whose leaves are PH() becomes one
  // input for each leaf.
  Kwargs concrete_args = {};
  // By name: what a proxy is like. A tensor without an example is opaque.
  Kwargs examples = {};
  bool symbolic = false;  // the sizes of examples are symbols: the graph holds for others, as far as guards() say
  std::shared_ptr<FakeMode> fake = {};  // the examples are this mode's already
  bool drop_concrete_args = false;      // they leave no input and no check in the graph
};

// A function to trace: its body, its arguments' names and kinds.
struct TraceableFunction {
  std::function<Value(const Values&)> body;
  std::vector<std::string> names;
  ForwardSignature signature = {};
  std::string name = "Function";
};

// What a proxy is like: the structure of its value (an outline, see nn/signature.h), or its fake value.
struct ProxyLike {
  Value outline = {};
  std::optional<Value> value = {};
};

// The module in whose forward a node was made.
struct Scope {
  std::string module_path;
  std::string module_type;
  bool operator==(const Scope&) const = default;
};

class Tracer : private Mode, public ModuleObserver {
 public:
  Tracer();
  ~Tracer() override;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // ---- settings -----------------------------------------------------------------------------------------------------
  bool record_stack_traces = false;       // meta.stack_trace, beside meta.location
  bool check_mutable_operations = false;  // a call_function that writes its arguments is an error
  bool proxy_buffer_attributes = false;   // buffers are proxies as parameters are: calls on them alone are recorded too
  // A module that was made for one call, such as a loss, is put into root and becomes a step: lossname_0, lossname_1, ...
  bool allow_insert_stateless_mods = false;

  // ---- tracing ------------------------------------------------------------------------------------------------------
  // Tensors that are no attribute of the module become buffers of it, outside its state dict: _tensor_constant0, ...
  Graph trace(Module& root, const TraceInputs& inputs = {}, std::source_location where = std::source_location::current());
  Graph trace(const TraceableFunction& function, const TraceInputs& inputs = {},
              std::source_location where = std::source_location::current());
  // The module traced last, or the one that holds the attributes of the function traced last.
  Module& root() const;
  // Of the proxies with symbolic sizes; null when there were none.
  const std::shared_ptr<ShapeEnv>& env() const;
  const std::unordered_map<std::string, Scope>& node_name_to_scope() const;

  // ---- what a derived tracer may change -----------------------------------------------------------------------------
  // By default modules of torch.nn, except Sequential.
  virtual bool is_leaf_module(Module& module, const std::string& path);
  // UserError when it is not within root, and may not be put there; empty where it was made of proxies and is traced through.
  virtual std::string path_of_module(Module& module);
  using Forward = std::function<Value(const Values& args, const Kwargs& kwargs)>;
  virtual Value call_module(Module& module, const Forward& forward, const Values& args, const Kwargs& kwargs);
  // A value as an argument of a node.
  virtual Value create_arg(const Value& value);
  virtual Node* create_node(NodeKind kind, const Target& target, Values args, Kwargs kwargs, std::string_view name = {},
                            std::string type = {});
  // A node and what stands for its value.
  virtual Value create_proxy(NodeKind kind, const Target& target, const Values& args, const Kwargs& kwargs = {},
                             const ProxyLike& like = {});
  // What the call gives on the examples, for the result's proxy; nothing: the proxy is opaque. By default errors go on.
  virtual std::optional<Value> example_result(NodeKind kind, const Target& target, const std::function<Value()>& call);
  // A size of a proxy is used: the node that gives it. By default a call of size(dim).
  virtual Node* size_node(Node& tensor, int64_t dim);
  // A parameter (or buffer) of the root is used: what stands for it. By default one get_attr for all uses.
  virtual Value get_attr(const std::string& path, const Tensor& tensor);
  // Asked when a program needs the truth of a proxy, or how many items one has. By default a UserError.
  virtual bool to_bool(Node& node);
  virtual int64_t iter(Node& node);
  // The keys of a proxy that stands for a dict, when it is spread into arguments.
  virtual Value keys(const Value& proxy);

  // ---- for derived tracers ------------------------------------------------------------------------------------------
  Graph& graph() const;
  const Scope& scope() const;
  Node* node_of(const Value& proxy) const;     // null when it is no proxy of this trace
  Tensor proxy(Node* node);                    // an opaque proxy for a node
  bool made_of_proxies(Module& module) const;  // one of its tensors, or of its children's, is a proxy

 private:
  friend class ProxyExtra;
  friend class GraphAppender;
  struct State;
  class Active;
  class Paused;

  ModeSlot slot() const override { return ModeSlot::function; }
  Value call(const Operator& op, const Values& args) override;
  std::optional<Value> call_function(std::string_view name, const Values& args, const Kwargs& kwargs) override;
  std::optional<Value> intercept(Module& module, const Values& args, const Kwargs& kwargs) override;

  Graph run(Module* module, const TraceableFunction& function, const TraceInputs& inputs, std::source_location where);
  Values make_inputs(const TraceableFunction& function, const TraceInputs& inputs);
  Value make_input(const TraceableFunction& function, size_t index, const TraceInputs& inputs);
  Value make_placeholder(const std::string& target, const std::optional<Value>& default_value, const Value& outline,
                         const Value* example, bool symbolic);
  void check_specialized(const std::string& name, const Value& input, const Value& value);
  bool involves_proxy(const Value& v);
  bool involves_proxy(const Values& args, const Kwargs& kwargs = {});
  bool has_values(const Value& v) const;
  bool has_values(const Values& args, const Kwargs& kwargs = {}) const;
  Value record_operator(const Operator& op, const Values& args);
  Value from_outline(Node* node, const Value& outline);
  Value from_value(Node* node, const Value& value);
  Value tensor_arg(const Tensor& t);
  Value constant(const Tensor& t);
  Value number(const Expr* e);
  Node* call_of(const char* function, Values args);
  SymInt size_of(Node& node, int64_t d);
  [[noreturn]] void refuse(const Node& node, const std::string& asked) const;
  std::string explained(const UserError& error) const;
  std::string insert(Module& module);

  std::unique_ptr<State> state_;
};

// Whether this thread is inside a trace.
bool is_fx_tracing();
// ... by a tracer that wants a module's call where a function would compute the same (Tracer::allow_insert_stateless_mods).
bool prefers_modules();

namespace tracer_detail {
template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class R, class... A>
struct Callable<R (*)(A...)> {
  static constexpr size_t arity = sizeof...(A);
  static ForwardSignature outlines() { return {{outline<stored_as<A>>()...}, outline<R>(), {}}; }
  template <class F, size_t... i>
  static Value call(F& f, const Values& args, std::index_sequence<i...>) {
    if constexpr (std::is_void_v<R>) {
      f(from_value<stored_as<A>>(args[i])...);
      return {};
    } else {
      return to_value(f(from_value<stored_as<A>>(args[i])...));
    }
  }
};
template <class R, class C, class... A>
struct Callable<R (C::*)(A...) const> : Callable<R (*)(A...)> {};
void check_count(size_t expected, size_t found, std::string_view name);
FunctionRef register_wrapped(std::string name, Function::Body body, ForwardSignature signature);
}  // namespace tracer_detail

// A function of C++ types that convert to Values (nn/convert.h). C++ does not tell the names of its arguments.
template <class F>
TraceableFunction traceable(F fn, std::vector<std::string> names, std::string name = "Function") {
  using C = tracer_detail::Callable<F>;
  tracer_detail::check_count(C::arity, names.size(), name);
  return {[fn](const Values& args) {
            tracer_detail::check_count(C::arity, args.size(), "the traced function");
            return C::call(fn, args, std::make_index_sequence<C::arity>{});
          },
          std::move(names), C::outlines(), std::move(name)};
}

std::shared_ptr<GraphModule> symbolic_trace(Module& root, const TraceInputs& inputs = {},
                                            std::source_location where = std::source_location::current());
std::shared_ptr<GraphModule> symbolic_trace(const TraceableFunction& function, const TraceInputs& inputs = {},
                                            std::source_location where = std::source_location::current());

// Makes a function one step of every trace: called with proxies it is recorded under `name` ("my_module.fused") and not
// entered; called with anything else it runs. The name is registered, so that graphs which hold it run.
template <class F>
auto wrap(const std::string& name, F fn) {
  using C = tracer_detail::Callable<F>;
  tracer_detail::register_wrapped(
      name,
      [fn, name](const Values& args, const Kwargs& kwargs) {
        tracer_detail::check_count(C::arity, args.size() + kwargs.size(), name);
        return C::call(fn, args, std::make_index_sequence<C::arity>{});
      },
      C::outlines());
  return [fn, name]<class... A>(const A&... args) {
    using R = decltype(fn(args...));
    if (modes_active())
      if (auto traced = offer_function(name, {to_value(args)...})) {
        if constexpr (std::is_void_v<R>)
          return;
        else
          return from_value<R>(*traced);
      }
    return fn(args...);
  };
}

// Adds nodes to a graph by computing with proxies of its nodes, at the graph's insertion point.
class GraphAppender {
 public:
  explicit GraphAppender(Graph& graph);
  ~GraphAppender();
  GraphAppender(const GraphAppender&) = delete;
  GraphAppender& operator=(const GraphAppender&) = delete;
  Tensor proxy(Node* node);
  Node* node(const Value& proxy) const;  // UserError when it is no proxy of this graph

 private:
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<Tracer::Active> active_;
};

}  // namespace calque
