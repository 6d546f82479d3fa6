#include "compile/function.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include <fmt/format.h>

#include "calque/base/counters.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/phases.h"
#include "calque/base/source_line.h"
#include "calque/base/warning.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "compile/books.h"
#include "compile/debug.h"

namespace calque::compile_detail {

namespace {

#ifdef NDEBUG
constexpr bool is_debug_build = false;
#else
constexpr bool is_debug_build = true;
#endif

// Captures of one entry that are made to verify it.
constexpr uint32_t most_verifications = 8;

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// Who watches calls has to see them: a trace, a fake mode, hooks of a tool. Autocast alone is no watcher.
bool is_watched() {
  if (module_observers_active()) return true;
  if (!modes_active()) return false;
  const PointerList<Mode>& modes = thread_context().modes;
  return !std::all_of(modes.begin(), modes.end(), [](const Mode* m) { return m->slot() == ModeSlot::autocast; });
}

bool has_fakes(const Call& call) {
  const auto any = [](const Value& v) {
    const Values leaves = tree_leaves(v);
    return std::any_of(leaves.begin(), leaves.end(),
                       [](const Value& l) { return l.is_tensor() && l.to_tensor().is_fake(); });
  };
  return std::any_of(call.args.begin(), call.args.end(), any) ||
         std::any_of(call.kwargs.begin(), call.kwargs.end(), [&](const auto& k) { return any(k.second); });
}

}  // namespace

std::string sizes_text(const GraphModule& module) {
  std::string out;
  for (const Node* n : module.graph().nodes())
    if (n->kind() == NodeKind::placeholder && n->meta.val.is_tensor())
      out += (out.empty() ? "" : " ") + n->name() + ":" + str(n->meta.val.to_tensor().sym_sizes());
  return out;
}

namespace {

double check_time_us(const Guards& guards, const Call& call, const std::vector<std::pair<std::string, Value>>& values) {
  GuardedCall found;
  const auto start = std::chrono::steady_clock::now();
  guards.check(call.args, call.kwargs, values, found);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Function::Function(Callee callee, std::shared_ptr<Module> root, std::vector<std::string> names, CompileOptions options,
                   std::source_location where)
    : callee_(std::move(callee)),
      root_(std::move(root)),
      names_(std::move(names)),
      options_(std::move(options)),
      where_(where),
      backend_(options_.with ? options_.with : lookup_backend(options_.backend)),
      number_(next_function_number()),
      entries_(std::make_shared<Entries>()) {}
Function::~Function() = default;

std::shared_ptr<const Function::Entries> Function::entries() const {
  const std::shared_lock lock(mutex_);
  return entries_;
}

Value Function::call(const Values& args, const Kwargs& kwargs) {
  const Call call{args, kwargs};
  if (stance() == Stance::force_eager || is_watched()) return eager(call);
  const std::shared_ptr<const Entries> list = entries();
  const auto values = guarded_values();
  for (const auto& entry : *list) {
    GuardedCall found;
    if (!entry->guards.check(args, kwargs, values, found)) continue;
    if (options_.verify.value_or(is_debug_build) && entry->verifications < most_verifications) verify(*entry, call);
    return serve(*entry, call, found);
  }
  return miss(call, *list);
}

std::string Function::failed_reasons(const Call& call, const Entries& list) {
  std::string all;
  const auto values = guarded_values();
  for (size_t i = 0; i < list.size(); ++i) {
    GuardedCall found;
    std::string why;
    list[i]->guards.check(call.args, call.kwargs, values, found, &why);
    why = fmt::format("{}/{}: {}", number_, i, why);
    all += (all.empty() ? "" : "\n") + ("  - " + why);
    {
      const std::unique_lock lock(mutex_);
      if (reasons_.size() < 1000) reasons_.push_back(why);
    }
    if (i + 1 == list.size() && options_.guard_fail) options_.guard_fail(why);
  }
  return all;
}

// Nothing that is kept serves this call.
Value Function::miss(const Call& call, const Entries& before) {
  const Stance now = stance();
  if (now == Stance::eager_on_recompile || has_fakes(call)) return eager(call);
  const std::string title = fmt::format("function {} ({}:{})", options_.name, base_name(where_.file_name()), where_.line());
  if (now == Stance::fail_on_recompile)
    throw RecompileError("compile: " + title + " has nothing that serves this call, and the stance is fail_on_recompile" +
                         (before.empty() ? "" : ":\n" + failed_reasons(call, before)));
  const std::lock_guard compiling(compile_mutex_);
  const std::shared_ptr<const Entries> list = entries();
  for (const auto& entry : *list) {  // another thread may have made it
    GuardedCall found;
    if (entry->guards.check(call.args, call.kwargs, guarded_values(), found)) return serve(*entry, call, found);
  }
  std::string why;
  if (!list->empty()) {
    why = failed_reasons(call, *list);
    note_recompile(options_.name + ": " + why);
    counters().add("recompiles", options_.name);
    const std::string text = fmt::format("Recompiling {}\n triggered by the following guard failure(s):\n{}", title, why);
    write_log(Log::recompiles, text);
    if (options_.error_on_recompile) throw RecompileError("compile: " + text);
  }
  if (list->size() >= options_.recompile_limit) {
    const std::string text = fmt::format(
        "compile hit recompile_limit ({}) with {}; it runs eagerly where nothing that is kept serves\n last reasons:\n{}\n"
        "CALQUE_LOGS=\"recompiles\" logs every reason; CompileOptions::recompile_limit raises the limit, dynamic sizes or "
        "guard_on with fewer values may need less",
        options_.recompile_limit, title, why);
    if (options_.fail_on_recompile_limit_hit) throw RecompileLimitError(text);
    if (!limit_hit_.exchange(true)) warn(text);
    counters().add("recompile_limit", options_.name);
    return eager(call);
  }
  if (!skip_reason_.empty()) return eager(call);
  const std::shared_ptr<Entry> entry = add_entry(call, why);
  if (!entry) return run_uncaptured(call);
  GuardedCall found;
  std::string refused;
  if (!entry->guards.check(call.args, call.kwargs, guarded_values(), found, &refused))
    throw InternalError("compile: guards refuse the call that they were made for: " + refused);
  return serve(*entry, call, found);
}

CompilationMetrics Function::new_metrics() const {
  CompilationMetrics m;
  m.compile_id = fmt::format("{}/{}", number_, captures_);
  m.frame_key = std::to_string(current_frame());
  m.co_name = options_.name;
  m.co_filename = where_.file_name();
  m.co_firstlineno = where_.line();
  m.cache_size = static_cast<int64_t>(entries()->size());
  m.accumulated_cache_size = static_cast<int64_t>(captures_);
  m.config_suppress_errors = options_.suppress_errors;
  m.start_time_us = microseconds_now();
  m.start_time = static_cast<double>(m.start_time_us) / 1e6;
  m.dynamo_config = options_json(options_);
  if (root_)
    for (const Tensor& p : root_->parameters()) {
      ++m.param_count;
      m.param_numel += p.numel();
      m.param_bytes += static_cast<int64_t>(p.nbytes());
    }
  return m;
}

CaptureRequest Function::request(const SeenInputs& seen) const {
  return {callee_, root_, names_, fixed_sizes_ ? false : options_.dynamic, fixed_numbers_, &seen, {}, guarded_values()};
}

Captured Function::captured(CaptureRequest request, const Call& call, CompilationMetrics& metrics) const {
  const Phase phase("capture", "dynamo_capture");
  Captured out = capture(request, call);
  metrics.graph_op_count = static_cast<int64_t>(out.num_ops);
  metrics.graph_node_count = static_cast<int64_t>(out.module->graph().size());
  metrics.graph_input_count = static_cast<int64_t>(out.inputs.size());
  metrics.graph_node_shapes = sizes_text(*out.module);
  metrics.shape_env_guard_count = out.guards.checks ? static_cast<int64_t>(out.guards.checks->checks.size()) : 0;
  increment_op_count(out.num_ops);
  counters().add("stats", "calls_captured", out.num_ops);
  counters().add("stats", "unique_graphs");
  return out;
}

void Function::note_break(const Question& question, CompilationMetrics& metrics) {
  const GraphBreak found{question.reason(), question.where.file_name(), question.where.line()};
  const std::string place = fmt::format("{}:{}", found.file, found.line);
  metrics.restart_reasons.insert(found.reason);
  if (options_.fullgraph)
    throw UnsupportedError(
        fmt::format("compile: {} needs a graph without a break (fullgraph), found {} at {}; keep the computation in tensors "
                    "(where, cond), or "
                    "leave fullgraph out{}",
                    options_.name, found.reason, place, source_line(question.where)));
  counters().add("graph_break", found.reason);
  write_log(Log::graph_breaks,
            fmt::format("Graph break in {} at {}: {}{}", options_.name, place, found.reason, source_line(question.where)));
  const std::unique_lock lock(mutex_);
  if (breaks_.size() < 1000) breaks_.push_back(found);
}

void Function::with_books(const std::string& why, const std::function<void(CompilationMetrics&)>& body) {
  increment_frame();
  CompilationMetrics metrics = new_metrics();
  ++captures_;
  if (!why.empty()) metrics.recompile_reason = why;
  trace_start(metrics);
  const auto done = [&] {
    metrics.end_time_us = microseconds_now();
    metrics.duration_us = metrics.end_time_us - metrics.start_time_us;
    metrics.entire_frame_compile_time_s = static_cast<double>(metrics.duration_us) / 1e6;
    const auto times = frame_times(current_frame());
    if (const auto at = times.find("backend_compile"); at != times.end()) metrics.backend_compile_time_s = at->second;
    trace_metrics(metrics);
    debug_metrics(metrics);
    record_compilation_metrics(metrics);
  };
  try {
    const Phase phase("compile", "entire_frame_compile");
    body(metrics);
    metrics.has_guarded_code = true;
    counters().add("frames", "ok");
    done();
  } catch (const Error& e) {
    metrics.fail_type = fail_type_of(e);
    metrics.fail_reason = e.what();
    metrics.fail_user_frame_filename = where_.file_name();
    metrics.fail_user_frame_lineno = where_.line();
    done();
    throw;
  }
}

std::shared_ptr<Entry> Function::add_entry(const Call& call, const std::string& why) {
  see_inputs(seen_, names_, call);
  std::shared_ptr<Entry> entry;
  try {
    with_books(why, [&](CompilationMetrics& metrics) {
      Captured c = captured(request(seen_), call, metrics);
      if (c.open) note_break(*c.open, metrics);
      const Phase guards("build_guards", "guards");
      auto made = std::make_shared<Entry>(std::move(c.guards));
      metrics.guard_count = static_cast<int64_t>(made->guards.size());
      write_guards_log(made->guards, metrics);
      made->first = std::make_shared<Step>();
      made->first->seen = seen_;
      made->first->source = std::make_shared<const Captured>(std::move(c));
      trace_capture(*made->first->source, made->guards, metrics);
      debug_capture(*made->first->source, made->guards, metrics);
      set_up(*made->first, {}, &metrics);
      metrics.guard_latency_us = check_time_us(made->guards, call, guarded_values());
      entry = std::move(made);
    });
  } catch (const UnsupportedError&) {
    throw;
  } catch (const BackendCompilerError&) {
    throw;
  } catch (const UserError& e) {
    if (e.kind() == ErrorKind::constraint_violation) throw;
    if (fix_symbols()) return add_entry(call, why);
    skip(e);
    return nullptr;
  }
  auto grown = std::make_shared<Entries>(*entries());
  grown->push_back(entry);
  const std::unique_lock lock(mutex_);
  entries_ = std::move(grown);
  return entry;
}

// Whether there are symbols to do without: first numbers, then sizes that changed.
bool Function::fix_symbols() {
  const auto any = [&](const auto& has) {
    return std::any_of(seen_.begin(), seen_.end(), [&](const auto& s) { return has(s.second); });
  };
  if ((options_.dynamic == true || any([](const SeenInput& s) { return s.number_changed; })) &&
      !std::exchange(fixed_numbers_, true))
    return true;
  const bool has_sizes =
      any([](const SeenInput& s) { return std::find(s.sizes.begin(), s.sizes.end(), -1) != s.sizes.end(); });
  return has_sizes && !options_.dynamic && !std::exchange(fixed_sizes_, true);
}

// A mistake of the user's shows here, and is no reason to capture no other call.
Value Function::run_uncaptured(const Call& call) {
  try {
    return eager(call);
  } catch (...) {
    const std::lock_guard compiling(compile_mutex_);
    skip_reason_.clear();
    throw;
  }
}

void Function::drop(const Entry& entry) {
  auto rest = std::make_shared<Entries>(*entries());
  std::erase_if(*rest, [&](const auto& e) { return e.get() == &entry; });
  const std::unique_lock lock(mutex_);
  entries_ = std::move(rest);
}

// What cannot be captured at all runs eagerly from then on.
void Function::skip(const UserError& why) {
  if (options_.fullgraph)
    throw UnsupportedError(fmt::format("compile: {} ({}:{}) cannot be captured: {}", options_.name, where_.file_name(),
                                       where_.line(), why.what()));
  skip_reason_ = why.what();
  counters().add("graph_break", "not captured: " + skip_reason_);
  write_log(Log::graph_breaks, fmt::format("{} runs eagerly: {}", options_.name, skip_reason_));
  const std::unique_lock lock(mutex_);
  breaks_.push_back({"not captured: " + skip_reason_, where_.file_name(), where_.line()});
}

// Another capture has to give the same graph: what a C++ variable changed shows here. A call whose sizes make other symbols (two that
// are equal are one) has another graph for that alone: a later call is looked at.
void Function::verify(Entry& entry, const Call& call) {
  const std::lock_guard compiling(compile_mutex_);
  if (entry.verifications >= most_verifications) return;  // by another thread
  const Captured again = capture(request(entry.first->seen), call);
  ++entry.verifications;
  if (sizes_text(*entry.first->source->module) != sizes_text(*again.module)) return;
  entry.verifications = most_verifications;
  const std::string before = std::as_const(*entry.first->source->module).graph().str();
  const std::string now = std::as_const(*again.module).graph().str();
  if (before == now) return;
  throw UserError(
      fmt::format("compile: {} computes another graph than when it was captured, though its guards hold: it depends on "
                  "something that cannot be seen (guard_on() says it)\n--- before\n{}\n--- now\n{}",
                  options_.name, before, now));
}

// ---- what is known of it ----------------------------------------------------------------------------------------------

void Function::reset() {
  const std::lock_guard compiling(compile_mutex_);
  const std::unique_lock lock(mutex_);
  entries_ = std::make_shared<Entries>();
  seen_.clear();
  captures_ = 0;
  limit_hit_ = false;
  fixed_numbers_ = fixed_sizes_ = false;
  skip_reason_.clear();
  breaks_.clear();
  reasons_.clear();
}

void Function::guard_on(std::string name, std::function<Value()> value) {
  const std::unique_lock lock(mutex_);
  guarded_.emplace_back(std::move(name), std::move(value));
}

std::vector<std::pair<std::string, Value>> Function::guarded_values() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, Value>> out;
  for (const auto& [name, value] : guarded_) out.emplace_back(name, value());
  return out;
}

size_t Function::cache_size() const { return entries()->size(); }

std::vector<std::string> Function::guards(size_t entry) const {
  const auto list = entries();
  if (entry >= list->size())
    throw UserError(fmt::format("guards: {} has {} entries, found {}", options_.name, list->size(), entry));
  return (*list)[entry]->guards.texts();
}

namespace {

void add_graphs(const Step& step, std::vector<std::shared_ptr<GraphModule>>& out) {
  if (step.built && step.built->has_calls) out.push_back(step.built->part.module);
  for (const auto& [answer, next] : step.answers) add_graphs(*next, out);
}

}  // namespace

std::vector<std::shared_ptr<GraphModule>> Function::graphs() const {
  const auto list = entries();
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<GraphModule>> out;
  for (const auto& entry : *list) add_graphs(*entry->first, out);
  return out;
}

std::vector<GraphBreak> Function::graph_breaks() const {
  const std::shared_lock lock(mutex_);
  return breaks_;
}

std::vector<std::string> Function::reasons() const {
  const std::shared_lock lock(mutex_);
  return reasons_;
}

bool Function::serves(const Values& args, const Kwargs& kwargs) const {
  const auto list = entries();
  const auto values = guarded_values();
  return std::any_of(list->begin(), list->end(), [&](const auto& entry) {
    GuardedCall found;
    return entry->guards.check(args, kwargs, values, found);
  });
}

std::vector<std::string> Function::failures(const Values& args, const Kwargs& kwargs) const {
  std::vector<std::string> out;
  for (const auto& entry : *entries()) {
    GuardedCall found;
    std::string why;
    if (!entry->guards.check(args, kwargs, guarded_values(), found, &why)) out.push_back(why);
  }
  return out;
}

}  // namespace calque::compile_detail
