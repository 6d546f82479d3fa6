// make_fx: runs a function once and records the operators it calls as a graph.
//
//   TracedGraph g = make_fx([](const Tensor& x) { return x.sin() + 1; }, {.mode = TracingMode::symbolic})(x);
//   Tensor y = g(x2).to_tensor();
//
// real: on the tensors given; fake: on tensors without data of the same sizes; symbolic: with a symbol for each size, so
// that the graph holds for other sizes too, as far as its guards say. Inputs and outputs are any tree of Values. What is
// closed over becomes a parameter or buffer of the graph module.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "calque/graph/graph_module.h"
#include "calque/graph/higher_order.h"
#include "calque/nn/convert.h"
#include "calque/op/tree.h"
#include "calque/sym/produce_guards.h"
#include "calque/sym/shape_env.h"
#include "calque/trace/fake.h"

namespace calque {

enum class TracingMode : uint8_t { real, fake, symbolic };

// How to write an operator in terms of others, by operator. A function may decline by giving nothing.
using Decomposition = std::function<std::optional<Value>(const Values& args)>;
using DecompositionTable = std::unordered_map<const Operator*, Decomposition>;

struct MakeFxOptions {
  TracingMode mode = TracingMode::real;
  const DecompositionTable* decompositions = nullptr;
  bool pre_dispatch = false;            // record composite operators whole
  bool record_module_stack = false;     // nn_module_stack on each node
  bool allow_non_fake_inputs = false;   // tensors that are closed over may be used with fake ones
  bool error_on_data_dependent = true;  // real mode: reading a value of a traced tensor is an error
  bool pytorch_guards = false;          // symbolic: see FakeOptions
  bool runtime_asserts = false;         // conditions on values that are only known at run time become checks in the graph
  std::vector<std::string> names = {};  // of the arguments; by default arg0, arg1, ...
  std::shared_ptr<ShapeEnv> env = {};   // symbolic: where to make the symbols; by default a fresh one
  std::shared_ptr<FakeMode> fake = {};  // the arguments are this mode's already, and are taken as they are
};

// What make_fx gives: the graph module (the graph with the tensors and the subgraphs of higher-order operators that it
// refers to) and how it was traced. Copies share the module. Run by any number of threads once made.
struct TracedGraph {
  std::shared_ptr<GraphModule> module;  // tensors under "_tensor_constant0", "_param_constant0", graphs under "true_graph_0"
  std::shared_ptr<ShapeEnv> env;        // its guards say for which sizes the graph holds; null without symbols
  std::shared_ptr<FakeMode> fake;       // null in real mode
  TreeSpec in_spec;                     // of the tuple of arguments
  std::vector<Placeholder> inputs;      // tensors and integers with symbols, as guards name them: L['x']

  Graph& graph() { return module->graph(); }
  const Graph& graph() const { return std::as_const(*module).graph(); }
  // For which inputs the graph holds.
  ProducedGuards guards(const GuardsRequest& request = {}) const;

  Value run(const Values& args) const;
  template <class... A>
  Value operator()(const A&... args) const {
    return run({to_value(args)...});
  }
};

// A trace inside a trace records for itself alone: the outer one goes on when it is done. In the fake and symbolic modes
// its arguments may be the outer one's fake tensors, and keep their mode and symbols.
TracedGraph make_fx_values(const std::function<Value(const Values&)>& fn, const Values& args,
                           const MakeFxOptions& options = {});

// A trace that is going on.
class ProxyMode {
 public:
  virtual ~ProxyMode() = default;
  virtual const Graph& recorded() const = 0;               // so far
  virtual const Node* node_of(const Tensor& t) const = 0;  // the node that computes it; null: none of this trace does
};
// The trace that records the calling thread's calls now: of traces inside traces the innermost. Null when there is none, or
// when it is switched off.
const ProxyMode* get_innermost_proxy_mode();

// Tracing is switched off while in scope (PyTorch's disable_proxy_modes_tracing): calls run, and their results are constants
// to the trace. A make_fx inside of it records for itself.
class NoTraceScope {
 private:
  ContextSwitch<&ThreadContext::recorder, nullptr> nobody_;
  ContextSwitch<&ThreadContext::higher_order_tracer, nullptr> graphs_;
};

// What is recorded while in scope was made for this node: it takes the node's source line, stack trace, module stack,
// function names and custom entries instead of those of the call.
class NodeMetaScope : ContextScope<&ThreadContext::origin_meta> {
 public:
  explicit NodeMetaScope(const NodeMeta& meta) : ContextScope(&meta) {}
};

namespace make_fx_detail {
template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class R, class... A>
struct Callable<R (*)(A...)> {
  template <class F, size_t... i>
  static Value call(const F& f, const Values& args, std::index_sequence<i...>) {
    if (args.size() != sizeof...(A))
      throw UserError("make_fx: the function takes " + std::to_string(sizeof...(A)) + " arguments, " +
                      std::to_string(args.size()) + " were given");
    if constexpr (std::is_void_v<R>) {
      f(from_value<stored_as<A>>(args[i])...);
      return {};
    } else {
      return to_value(f(from_value<stored_as<A>>(args[i])...));
    }
  }
  template <class F>
  static Value call(const F& f, const Values& args) {
    return call(f, args, std::index_sequence_for<A...>{});
  }
};
template <class R, class C, class... A>
struct Callable<R (C::*)(A...) const> : Callable<R (*)(A...)> {};
}  // namespace make_fx_detail

// The function takes and gives C++ types that convert to Values (nn/convert.h), or one `const Values&`.
template <class F>
auto make_fx(F fn, MakeFxOptions options = {}) {
  return [fn = std::move(fn), options = std::move(options)]<class... A>(const A&... args) {
    return make_fx_values(
        [&](const Values& values) -> Value {
          if constexpr (std::is_invocable_r_v<Value, F, const Values&>)
            return fn(values);
          else
            return make_fx_detail::Callable<F>::call(fn, values);
        },
        {to_value(args)...}, options);
  };
}

// The graph of a function, made apart from any trace that is going on: nothing of it, not even the making of its arguments'
// copies, reaches that trace.
template <class F, class... A>
std::shared_ptr<GraphModule> get_isolated_graphmodule(F fn, const std::tuple<A...>& args, MakeFxOptions options = {}) {
  const NoTraceScope apart;
  return std::apply(make_fx(std::move(fn), std::move(options)), args).module;
}

}  // namespace calque
