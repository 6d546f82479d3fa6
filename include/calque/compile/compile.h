// compile: a module or function that is captured at its first call and runs as a plan from then on.
//
//   auto f = compile(model);                          Value y = f.call({x});
//   auto g = compile([](const Tensor& x) { return x.sin() + 1; });   Tensor y = g(x);
//
// Each call checks guards: what the capture saw of the arguments, of the modules and of the thread. When they fail, another
// capture is made and kept beside the first, up to a limit. What a capture cannot see are C++ variables: members that are no
// parameters, buffers or children, what a lambda holds, globals. guard_on() says them.
// A question about data (a branch on a value, item<int>()) breaks the graph: the parts before and after are compiled, and for
// each answer that occurs the function is captured once more, on tensors without data. docs/compile.md tells what that costs.
// The function may run several times while it is captured, on tensors without data: what else it does (printing, counting) happens each
// time. A compiled function may be called from any number of threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/compile/marks.h"
#include "calque/graph/graph_module.h"
#include "calque/trace/make_fx.h"

namespace calque {

// What runs a captured graph: its inputs in the order of its placeholders; gives the graph's output, a tuple. Called by many threads.
struct CompiledGraph {
  std::function<Value(const Values& inputs)> run;
  std::function<bool()> is_current = {};  // false: make it anew, what it was made from has changed; empty: always current
};
// Makes it. `example_inputs` are fake tensors and numbers as the capture had them.
using Backend = std::function<CompiledGraph(std::shared_ptr<GraphModule> graph, const Values& example_inputs)>;
// "calque" (a plan), "eager" (node by node), "aot_eager" (composite operators expanded, without writes inside, node by node).
void register_backend(std::string name, Backend backend);  // UserError for a name that is taken
std::vector<std::string> list_backends();
Backend lookup_backend(std::string_view name);  // UserError that lists the names

struct CompileOptions {
  std::optional<bool> dynamic = {};  // true: sizes are symbols at once; false: never; none: a size that changes becomes one
  bool fullgraph = false;            // a graph break is an error
  std::string backend = "calque";
  Backend with = {};  // used instead of the one that `backend` names
  std::string name = {};
  size_t recompile_limit = 8;  // captures of a function and answers of a question; then calls that fit none run eagerly
  bool fail_on_recompile_limit_hit = false;
  bool error_on_recompile = false;
  bool suppress_errors = false;  // what a backend throws: the call runs eagerly
  // The second call of each entry captures again; another graph is an error that says what differs. None: where Calque was built
  // without NDEBUG.
  std::optional<bool> verify = {};
  // Told why an entry did not serve, before something is captured again.
  std::function<void(const std::string& reason)> guard_fail = {};
};

// A program that cannot be compiled as it was asked to be: fullgraph with a graph break, and the like.
class UnsupportedError : public UserError {
 public:
  using UserError::UserError;
};
class RecompileError : public UserError {
 public:
  using UserError::UserError;
};
class RecompileLimitError : public UserError {
 public:
  using UserError::UserError;
};
class BackendCompilerError : public UserError {
 public:
  using UserError::UserError;
};

struct GraphBreak {
  std::string reason;  // "a branch on data: u0 > 3"
  std::string file;
  int64_t line = 0;
};

namespace compile_detail {
class Function;
}  // namespace compile_detail

// A compiled module or function. Copies share it.
class Compiled {
 public:
  explicit Compiled(std::shared_ptr<compile_detail::Function> function) : function_(std::move(function)) {}
  Value call(const Values& args, const Kwargs& kwargs = {}) const;

  size_t cache_size() const;                                 // captures that are kept
  std::vector<std::string> guards(size_t entry) const;       // in words
  std::vector<std::shared_ptr<GraphModule>> graphs() const;  // those that were given to the backend, in order
  std::vector<GraphBreak> graph_breaks() const;
  std::vector<std::string> recompile_reasons() const;  // one for each entry that did not serve, newest captures last
  bool serves(const Values& args, const Kwargs& kwargs = {}) const;  // whether an entry's guards hold for the call
  // Why not: of each entry the first guard that fails.
  std::vector<std::string> guard_failures(const Values& args, const Kwargs& kwargs = {}) const;
  void reset() const;  // forgets every capture
  // A value that the function depends on and that nobody can see: asked before each check.
  void guard_on(std::string name, std::function<Value()> value) const;

 private:
  std::shared_ptr<compile_detail::Function> function_;
};

Compiled compile(std::shared_ptr<Module> module, CompileOptions options = {},
                 std::source_location where = std::source_location::current());
// The module itself is compiled from now on: what torch.nn.Module.compile does. Its calls run what was captured; inside of other
// captures and traces they are the module's own. What is given back tells of it, must not outlive the module, and is not needed.
Compiled compile_in_place(Module& module, CompileOptions options = {},
                          std::source_location where = std::source_location::current());
Compiled compile_values(std::function<Value(const Values& args)> function, std::vector<std::string> names,
                        CompileOptions options = {}, std::source_location where = std::source_location::current());

// The function's own result type.
template <class R, class F>
class CompiledFunction : public Compiled {
 public:
  explicit CompiledFunction(Compiled compiled) : Compiled(std::move(compiled)) {}
  template <class... A>
  R operator()(const A&... args) const {
    if constexpr (std::is_void_v<R>)
      call({to_value(args)...});
    else
      return from_value<R>(call({to_value(args)...}));
  }
};

namespace compile_detail {
template <class F>
struct ResultOf : ResultOf<decltype(&F::operator())> {};
template <class R, class... A>
struct ResultOf<R (*)(A...)> {
  using type = R;
};
template <class R, class C, class... A>
struct ResultOf<R (C::*)(A...) const> : ResultOf<R (*)(A...)> {};
}  // namespace compile_detail

// A function or lambda of C++ types that convert to Values (nn/convert.h).
template <class F>
  requires(!std::is_convertible_v<F, std::shared_ptr<Module>>)
auto compile(F function, CompileOptions options = {}, std::source_location where = std::source_location::current()) {
  return CompiledFunction<typename compile_detail::ResultOf<F>::type, F>(
      compile_values([function](const Values& args) { return make_fx_detail::Callable<F>::call(function, args); }, {},
                     std::move(options), where));
}

// ---- disable --------------------------------------------------------------------------------------------------------
namespace compile_detail {
Value call_eagerly(const std::function<Value(const Values& args)>& function, const Values& args, const std::string& reason,
                   std::source_location where);
}  // namespace compile_detail

// A function that is not captured: inside a compiled one its call is a graph break. It runs eagerly, on tensors with data, each time;
// its result is an argument of what follows, with guards of its own. Elsewhere it is the function itself. It is called when the function
// around it is gone: it must own what it holds, and take tensors as arguments.
template <class R, class F>
class DisabledFunction {
 public:
  DisabledFunction(F function, std::string reason, std::source_location where)
      : function_([f = std::move(function)](const Values& args) { return make_fx_detail::Callable<F>::call(f, args); }),
        reason_(std::move(reason)),
        where_(where) {}
  template <class... A>
  R operator()(const A&... args) const {
    if constexpr (std::is_void_v<R>)
      compile_detail::call_eagerly(function_, {to_value(args)...}, reason_, where_);
    else
      return from_value<R>(compile_detail::call_eagerly(function_, {to_value(args)...}, reason_, where_));
  }

 private:
  std::function<Value(const Values& args)> function_;
  std::string reason_;
  std::source_location where_;
};
template <class F>
  requires(!std::is_convertible_v<F, std::shared_ptr<Module>>)
auto disable(F function, std::string reason = {}, std::source_location where = std::source_location::current()) {
  return DisabledFunction<typename compile_detail::ResultOf<F>::type, F>(std::move(function), std::move(reason), where);
}
// A module around this one, its child `_orig_mod`, to be put in its place.
std::shared_ptr<Module> disable(std::shared_ptr<Module> module, std::string reason = {},
                                std::source_location where = std::source_location::current());

// ---- allow_in_graph ---------------------------------------------------------------------------------------------------
namespace compile_detail {
int64_t allow(std::function<Value(const Values& args)> function, std::string name);
Value call_allowed(int64_t number, const Values& args);
}  // namespace compile_detail

// A function that a capture does not look into: its call is one node of the graph, `calque.allowed`, and backends call the function. It takes tensors and
// gives tensors (one, a tuple or a list of them); on tensors without data it has to give what sizes and dtypes say. It must own what it holds. Outside of
// captures it is the function itself. What it does beside that (writes, random numbers) no guard and no pass sees.
template <class R, class F>
class AllowedFunction {
 public:
  AllowedFunction(F function, std::string name)
      : number_(compile_detail::allow(
            [f = std::move(function)](const Values& args) { return make_fx_detail::Callable<F>::call(f, args); },
            std::move(name))) {}
  template <class... A>
  R operator()(const A&... args) const {
    return from_value<R>(compile_detail::call_allowed(number_, {to_value(args)...}));
  }

 private:
  int64_t number_;
};
template <class F>
auto allow_in_graph(F function, std::string name = {}) {
  return AllowedFunction<typename compile_detail::ResultOf<F>::type, F>(std::move(function), std::move(name));
}

// ---- of the whole process -----------------------------------------------------------------------------------------
// Forgets every capture of every compiled function, and the counters and frames.
void reset_compile();
std::vector<std::string> recompile_reasons();  // "name: reason", the newest 1,000

enum class Stance : uint8_t {
  standard,            // "default"
  force_eager,         // nothing compiled runs
  eager_on_recompile,  // what is cached runs, the rest eagerly; nothing is captured
  fail_on_recompile,   // RecompileError where nothing that is cached serves
};
void set_stance(Stance stance);
Stance stance();
class StanceScope {
 public:
  explicit StanceScope(Stance s) : before_(stance()) { set_stance(s); }
  ~StanceScope() { set_stance(before_); }
  StanceScope(const StanceScope&) = delete;
  StanceScope& operator=(const StanceScope&) = delete;

 private:
  Stance before_;
};

// ---- explain -------------------------------------------------------------------------------------------------------
struct Explanation {
  std::vector<std::shared_ptr<GraphModule>> graphs;
  size_t graph_count = 0;
  size_t graph_break_count = 0;  // graphs without one
  size_t op_count = 0;
  std::vector<std::vector<std::string>> ops_per_graph;
  std::vector<GraphBreak> break_reasons;
  std::vector<std::string> out_guards;
  Value output;
  std::string compile_times;
  std::string str() const;
};
// What compiling this call would make, without keeping it; `output` is the call's result.
Explanation explain(std::shared_ptr<Module> module, const Values& args, const Kwargs& kwargs = {});
Explanation explain_values(std::function<Value(const Values& args)> function, const Values& args);
template <class F, class... A>
  requires(!std::is_convertible_v<F, std::shared_ptr<Module>>)
Explanation explain(F function, const A&... args) {
  return explain_values([function](const Values& v) { return make_fx_detail::Callable<F>::call(function, v); },
                        {to_value(args)...});
}

// Whether the calling thread is inside a capture of compile().
bool is_compiling();

}  // namespace calque
