#include "calque/compile/compile.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "calque/base/counters.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/phases.h"
#include "calque/base/source_line.h"
#include "compile/function.h"
#include "nn/call_itself.h"

namespace calque {
namespace {

struct Process {
  std::mutex mutex;
  std::vector<std::weak_ptr<compile_detail::Function>> functions;
  std::deque<std::string> recompiles;
  std::atomic<Stance> stance = Stance::standard;
  std::atomic<uint64_t> next_number = 0;
};

// At the end of the program, where the log is on. What it reads is made before it is registered, and so is there when it runs.
void write_times_at_exit() {
  log_enabled(Log::timing);
  log_names();
  compile_times(true);
  std::atexit([] {
    if (log_enabled(Log::timing)) write_log(Log::timing, compile_times(true));
  });
}

Process& process() {
  static Process p;
  static const bool is_registered = [] {
    write_times_at_exit();
    return true;
  }();
  (void)is_registered;
  return p;
}

Compiled registered(std::shared_ptr<compile_detail::Function> function) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  std::erase_if(p.functions, [](const auto& f) { return f.expired(); });
  p.functions.push_back(function);
  return Compiled(std::move(function));
}

}  // namespace

namespace compile_detail {

uint64_t next_function_number() { return process().next_number++; }

void note_recompile(const std::string& text) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  p.recompiles.push_back(text);
  if (p.recompiles.size() > 1000) p.recompiles.pop_front();
}

}  // namespace compile_detail

Value Compiled::call(const Values& args, const Kwargs& kwargs) const { return function_->call(args, kwargs); }
size_t Compiled::cache_size() const { return function_->cache_size(); }
std::vector<std::string> Compiled::guards(size_t entry) const { return function_->guards(entry); }
std::vector<std::shared_ptr<GraphModule>> Compiled::graphs() const { return function_->graphs(); }
std::vector<GraphBreak> Compiled::graph_breaks() const { return function_->graph_breaks(); }
std::vector<std::string> Compiled::recompile_reasons() const { return function_->reasons(); }
std::vector<std::string> Compiled::guard_failures(const Values& args, const Kwargs& kwargs) const {
  return function_->failures(args, kwargs);
}
bool Compiled::serves(const Values& args, const Kwargs& kwargs) const { return function_->serves(args, kwargs); }
void Compiled::reset() const { function_->reset(); }
void Compiled::guard_on(std::string name, std::function<Value()> value) const {
  function_->guard_on(std::move(name), std::move(value));
}

Compiled compile(std::shared_ptr<Module> module, CompileOptions options, std::source_location where) {
  if (!module) throw UserError("compile: expected a module, found none");
  if (options.name.empty()) options.name = module->class_name();
  std::vector<std::string> names = module->argument_names();
  Module* m = module.get();
  return registered(std::make_shared<compile_detail::Function>(
      [m](const Values& args, const Kwargs& kwargs) { return m->call(args, kwargs); }, std::move(module), std::move(names),
      std::move(options), where));
}

Compiled compile_in_place(Module& module, CompileOptions options, std::source_location where) {
  if (options.name.empty()) options.name = module.class_name();
  Module* m = &module;
  // The module owns what is made of it, and so is not owned by it.
  const std::shared_ptr<Module> unowned(std::shared_ptr<Module>(), m);
  Compiled compiled = registered(std::make_shared<compile_detail::Function>(
      [m](const Values& args, const Kwargs& kwargs) { return nn_detail::call_itself(*m, args, kwargs); }, unowned,
      module.argument_names(), std::move(options), where));
  nn_detail::call_instead(module,
                          [compiled](const Values& args, const Kwargs& kwargs) { return compiled.call(args, kwargs); });
  return compiled;
}

Compiled compile_values(std::function<Value(const Values& args)> function, std::vector<std::string> names,
                        CompileOptions options, std::source_location where) {
  if (!function) throw UserError("compile: expected a function, found none");
  if (options.name.empty()) options.name = "function";
  return registered(std::make_shared<compile_detail::Function>(
      [f = std::move(function)](const Values& args, const Kwargs& kwargs) {
        if (!kwargs.empty())
          throw UserError("compile: a function takes no keyword arguments, found '" + kwargs[0].first + "'");
        return f(args);
      },
      nullptr, std::move(names), std::move(options), where));
}

void reset_compile() {
  // Functions are reset without the lock: one that is capturing takes it to note why.
  std::vector<std::shared_ptr<compile_detail::Function>> alive;
  {
    Process& p = process();
    const std::lock_guard lock(p.mutex);
    for (const auto& f : p.functions)
      if (auto function = f.lock()) alive.push_back(std::move(function));
    p.recompiles.clear();
  }
  for (const auto& function : alive) function->reset();
  counters().clear();
  reset_frame_count();
  reset_phases();
}

std::vector<std::string> recompile_reasons() {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  return {p.recompiles.begin(), p.recompiles.end()};
}

void set_stance(Stance stance) { process().stance = stance; }
Stance stance() { return process().stance; }
bool is_compiling() { return compile_detail::is_inside_capture(); }

// ---- explain ------------------------------------------------------------------------------------------------------------

namespace {

Explanation explained(const Compiled& compiled, const std::function<Value()>& run) {
  Explanation out;
  out.output = run();
  out.graphs = compiled.graphs();
  out.graph_count = out.graphs.size();
  out.break_reasons = compiled.graph_breaks();
  out.graph_break_count = out.graph_count == 0 ? 0 : out.graph_count - 1;
  for (const auto& graph : out.graphs) {
    std::vector<std::string> ops;
    for (const Node* n : std::as_const(*graph).graph().nodes())
      if (n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_module || n->kind() == NodeKind::call_method)
        ops.push_back(n->target().str());
    out.op_count += ops.size();
    out.ops_per_graph.push_back(std::move(ops));
  }
  if (compiled.cache_size() != 0) out.out_guards = compiled.guards(0);
  out.compile_times = compile_times();
  return out;
}

}  // namespace

std::string Explanation::str() const {
  std::string out = fmt::format("Graph Count: {}\nGraph Break Count: {}\nOp Count: {}\nBreak Reasons:\n", graph_count,
                                graph_break_count, op_count);
  for (size_t i = 0; i < break_reasons.size(); ++i)
    out += fmt::format("  Break Reason {}:\n    Reason: {}\n    User Stack:\n      {}:{}{}\n", i + 1,
                       break_reasons[i].reason, break_reasons[i].file, break_reasons[i].line,
                       source_line(break_reasons[i].file.c_str(), static_cast<unsigned>(break_reasons[i].line), 0));
  out += "Ops per Graph:\n";
  for (size_t i = 0; i < ops_per_graph.size(); ++i) {
    out += fmt::format("  Ops {}:\n", i + 1);
    for (const std::string& op : ops_per_graph[i]) out += "    " + op + "\n";
  }
  out += "Out Guards:\n";
  for (size_t i = 0; i < out_guards.size(); ++i) out += fmt::format("  Guard {}:\n    {}\n", i + 1, out_guards[i]);
  return out + "Compile Times: " + compile_times + "\n";
}

Explanation explain(std::shared_ptr<Module> module, const Values& args, const Kwargs& kwargs) {
  CompileOptions options;
  options.backend = "eager";
  const Compiled compiled = compile(std::move(module), std::move(options));
  return explained(compiled, [&] { return compiled.call(args, kwargs); });
}

Explanation explain_values(std::function<Value(const Values& args)> function, const Values& args) {
  CompileOptions options;
  options.backend = "eager";
  const Compiled compiled = compile_values(std::move(function), {}, std::move(options));
  return explained(compiled, [&] { return compiled.call(args); });
}

}  // namespace calque
