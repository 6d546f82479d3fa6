#include "compile/function.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include <fmt/format.h>

#include "calque/base/counters.h"
#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/phases.h"
#include "calque/base/warning.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "compile/books.h"
#include "compile/debug.h"
#include "compile/recording.h"

namespace calque::compile_detail {

// One call on its way through the steps.
struct Function::Run {
  const Call& call;
  Entry& entry;
  Values args = call.args;  // and what disabled functions gave
  Bindings bindings = {};
  std::vector<std::shared_ptr<Step>> path = {};
  std::vector<DataAnswer> answers = {};
};

namespace {

#ifdef NDEBUG
constexpr bool is_debug_build = false;
#else
constexpr bool is_debug_build = true;
#endif

// Captures of one entry that are made to verify it.
constexpr uint32_t most_verifications = 8;

// Every question's answer occurred before, or too many did and nothing was written yet.
struct RunEagerly {};

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

Values inputs_of(const Part& part, const Bindings& bindings) {
  Values out;
  out.reserve(part.takes.size());
  for (const std::string& name : part.takes) {
    const auto at = bindings.find(name);
    if (at == bindings.end()) throw InternalError("compile: a part takes a value that nobody gave: " + name);
    out.push_back(at->second);
  }
  return out;
}

// Where the values stand among the call's inputs; none when one is no input.
std::optional<std::vector<size_t>> places_of(const std::vector<std::string>& names, const std::vector<std::string>& inputs) {
  std::vector<size_t> out;
  for (const std::string& name : names) {
    const auto at = std::find(inputs.begin(), inputs.end(), name);
    if (at == inputs.end()) return std::nullopt;
    out.push_back(static_cast<size_t>(at - inputs.begin()));
  }
  return out;
}

DataAnswer answer_of(const Value& v, const Question& question) {
  if (question.kind == "a branch on data") return v.to_bool();
  if (v.kind() == Value::Kind::floating) return v.to_float();
  return question.kind == "a float out of a tensor" ? DataAnswer(v.to_float()) : DataAnswer(v.to_int());
}

std::string text_of(const DataAnswer& a) {
  return std::visit([](auto v) { return Value(v).str(); }, a);
}

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

// The values that a part computes, by name.
std::set<std::string> values_of(const Part& all) { return {all.gives.begin(), all.gives.end()}; }

std::string sizes_text(const GraphModule& module) {
  std::string out;
  for (const Node* n : module.graph().nodes())
    if (n->kind() == NodeKind::placeholder && n->meta.val.is_tensor())
      out += (out.empty() ? "" : " ") + n->name() + ":" + str(n->meta.val.to_tensor().sym_sizes());
  return out;
}

size_t count_calls(const GraphModule& module) {
  size_t out = 0;
  for (const Node* n : module.graph().nodes())
    out += n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_module || n->kind() == NodeKind::call_method;
  return out;
}

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
                    "leave fullgraph out",
                    options_.name, found.reason, place));
  counters().add("graph_break", found.reason);
  write_log(Log::graph_breaks, fmt::format("Graph break in {} at {}: {}", options_.name, place, found.reason));
  const std::unique_lock lock(mutex_);
  if (breaks_.size() < 1000) breaks_.push_back(found);
}

// A capture with its books: what it found, or why it failed, is recorded once.
template <class F>
auto Function::with_books(const std::string& why, F&& body) {
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
    auto result = body(metrics);
    metrics.has_guarded_code = true;
    counters().add("frames", "ok");
    done();
    return result;
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
    entry = with_books(why, [&](CompilationMetrics& metrics) {
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
      return made;
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

// What comes behind a break cannot be captured: the call runs eagerly, from its start, unless something was written.
void Function::give_up(Run& run, const UserError& why) {
  drop(run.entry);
  if (!fix_symbols()) skip(why);
  if (std::all_of(run.path.begin(), run.path.end(), [](const auto& s) { return s->whole.is_pure; })) throw RunEagerly();
  throw UserError(fmt::format(
      "compile: {} cannot be captured behind {}: {}; it wrote something or called a disabled function before, and "
      "cannot begin again: the next call runs eagerly, or is captured for its sizes alone",
      options_.name, run.path.back()->source->open->reason(), why.what()));
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

// What is known of a step when it is made; one that ends the function is compiled at once, others when it is known what they have
// to give.
void Function::set_up(Step& step, const std::vector<std::shared_ptr<Step>>& before, CompilationMetrics* metrics) {
  step.whole = last_part(*step.source, {}, true);
  step.values = values_of(step.whole);
  if (!step.is_end() && step.source->open->call) step.whole.is_pure = false;
  if (!step.whole.is_pure) {
    step.gives_all = true;
    for (const auto& s : before) s->gives_all = true;
  }
  if (step.is_end()) build(step, metrics);
}

void Function::build(Step& step, CompilationMetrics* metrics) {
  auto built = std::make_shared<Step::Built>();
  built->part = step.is_end() ? last_part(*step.source, {}, false) : last_part(*step.source, step.wanted, step.gives_all);
  GraphModule& module = *built->part.module;
  built->has_calls = count_calls(module) != 0;
  built->places = places_of(built->part.takes, step.source->inputs);
  if (log_enabled(Log::graph)) write_log(Log::graph, text_with_symbols(module.graph()));
  if (log_enabled(Log::graph_code)) write_log(Log::graph_code, module.code());
  if (log_enabled(Log::graph_sizes)) write_log(Log::graph_sizes, sizes_text(module));
  if (metrics) trace_graph(module, *metrics);
  const DebugPartScope debug(metrics ? metrics->compile_id : fmt::format("{}/again", number_), module);
  Values examples;
  for (const Node* n : module.graph().placeholders()) examples.push_back(n->meta.val);
  const auto by_node = [&] {
    return CompiledGraph{
        [m = built->part.module](const Values& inputs) { return Interpreter(std::as_const(*m).graph()).run(inputs); }};
  };
  if (!built->has_calls) {
    built->graph = by_node();
  } else {
    const Phase phase("backend", "backend_compile");
    try {
      built->graph = backend_(built->part.module, examples);
      if (!built->graph.run) throw UserError("the backend gave nothing that can be called");
    } catch (const std::exception& e) {
      const std::string text =
          fmt::format("backend='{}' raised: {}", options_.with ? "a function" : options_.backend, e.what());
      const std::string recorded = write_recording(module, options_.name, options_.with ? "" : options_.backend, e.what());
      if (!recorded.empty()) warn("compile: " + options_.name + ": `calque replay " + recorded + "` fails as it did");
      if (metrics) {
        metrics->fail_type = "BackendCompilerFailed";
        metrics->fail_reason = text;
      }
      if (!options_.suppress_errors) throw BackendCompilerError("compile: " + text);
      warn("compile: " + text + "; the part runs node by node (suppress_errors)");
      built->graph = by_node();
    }
  }
  const std::unique_lock lock(mutex_);
  step.built = std::move(built);
}

// ---- running ----------------------------------------------------------------------------------------------------------

Value Function::finish(const Step& step, Values results) const {
  const Captured& c = *step.source;
  const size_t leaves = c.out_spec.num_leaves();
  for (size_t i = 0; i < c.assigned.size(); ++i) c.assigned[i]->tensor.copy_(results[leaves + i].to_tensor());
  results.resize(leaves);
  return c.out_spec.unflatten(results);
}

namespace {

Values take_items(Value result) { return result.to_items(); }

// Of the captured inputs: tensors come first, then numbers.
Value input_at(const Captured& captured, size_t i, const GuardedCall& found) {
  const size_t tensors = captured.input_tensors.size();
  if (i < tensors) return *found.tensors[captured.input_tensors[i]];
  const int64_t number = found.numbers[i - tensors];
  return captured.float_numbers[i - tensors] ? Value(std::bit_cast<double>(number)) : Value(number);
}

void bind_inputs(const Captured& captured, const GuardedCall& found, Bindings& bindings) {
  for (size_t i = 0; i < captured.inputs.size(); ++i)
    bindings.insert_or_assign(captured.inputs[i], input_at(captured, i, found));
}

}  // namespace

// What runs a step; made anew where what it was made from has changed.
std::shared_ptr<const Step::Built> Function::current(Step& step) {
  std::shared_ptr<const Step::Built> built;
  {
    const std::shared_lock lock(mutex_);
    built = step.built;
  }
  if (!built || !built->graph.is_current || built->graph.is_current()) return built;
  const std::lock_guard compiling(compile_mutex_);
  build(step, nullptr);
  return step.built;
}

Value Function::serve(Entry& entry, const Call& call, const GuardedCall& found) {
  const Captured& first = *entry.first->source;
  if (entry.first->is_end()) {
    const std::shared_ptr<const Step::Built> built = current(*entry.first);
    if (built && built->places) {
      Values inputs;
      inputs.reserve(built->places->size());
      for (const size_t place : *built->places) inputs.push_back(input_at(first, place, found));
      return finish(*entry.first, take_items(built->graph.run(inputs)));
    }
  }
  Run run{call, entry};
  bind_inputs(first, found, run.bindings);
  std::shared_ptr<Step> step = entry.first;
  try {
    while (true) {
      run.path.push_back(step);
      Values results = run_step(*step, run.bindings);
      if (step->is_end()) return finish(*step, std::move(results));
      ask(run, *step->source->open, results);
      step = next_step(run);
    }
  } catch (const RunEagerly&) {
    return run_uncaptured(call);
  }
}

// Runs a step, binds what it gives, and returns the rest.
Values Function::run_step(Step& step, Bindings& bindings, bool whole) {
  const std::shared_ptr<const Step::Built> built = current(step);
  const bool by_node = whole || !built;
  const Part& part = by_node ? step.whole : built->part;
  const Values inputs = inputs_of(part, bindings);
  Values results =
      take_items(by_node ? Interpreter(std::as_const(*part.module).graph()).run(inputs) : built->graph.run(inputs));
  for (size_t i = 0; i < part.gives.size(); ++i) bindings.insert_or_assign(part.gives[i], results[i]);
  results.erase(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(part.gives.size()));
  return results;
}

// The answer to a question: a number that a part gave, or an argument more, which a disabled function makes of what the part gave.
void Function::ask(Run& run, const Question& question, const Values& results) {
  if (!question.call) {
    run.answers.push_back(answer_of(results[0], question));
    return;
  }
  run.args.push_back(run_eager_call(*question.call, results));
  run.answers.emplace_back(true);
}

std::shared_ptr<Step> Function::next_step(Run& run) {
  Step& now = *run.path.back();
  const DataAnswer& answer = run.answers.back();
  const auto values = guarded_values();
  const auto is_served = [&](const Step& step) {
    GuardedCall found;
    if (!step.guards->check(run.args, run.call.kwargs, values, found)) return false;
    bind_inputs(*step.source, found, run.bindings);
    return true;
  };
  const auto known = [&]() -> std::shared_ptr<Step> {
    const std::shared_lock lock(mutex_);
    for (const auto& [a, step] : now.answers)
      if (a == answer && is_served(*step)) return step;
    return nullptr;
  };
  if (auto step = known()) return step;
  const std::lock_guard compiling(compile_mutex_);
  if (auto step = known()) return step;
  const bool is_full = now.answers.size() >= options_.recompile_limit;
  const bool may_start_again = std::all_of(run.path.begin(), run.path.end(), [](const auto& s) { return s->whole.is_pure; });
  if (is_full) {
    counters().add("recompile_limit", options_.name);
    if (!limit_hit_.exchange(true))
      warn(fmt::format(
          "compile hit recompile_limit ({}) with function {}: {} had other answers, the last {}; it runs eagerly for more",
          options_.recompile_limit, options_.name, now.source->open->reason(), text_of(answer)));
    if (may_start_again) throw RunEagerly();
  }
  std::shared_ptr<Step> next;
  try {
    next = make_step(run);
  } catch (const UnsupportedError&) {
    throw;
  } catch (const BackendCompilerError&) {
    throw;
  } catch (const UserError& e) {
    if (e.kind() == ErrorKind::constraint_violation) throw;
    give_up(run, e);
  }
  if (!is_served(*next)) throw InternalError("compile: guards behind a break refuse the call that they were made for");
  if (!next->whole.is_pure ||
      std::any_of(next->needs.begin(), next->needs.end(), [&](const auto& n) { return !run.bindings.contains(n); })) {
    // Parts that were compiled for other answers did not give what this one needs, or what comes behind it if they cannot run again
    // then. They run again, behind the last one that cannot: up to there everything was given.
    const auto last = std::find_if(run.path.rbegin(), run.path.rend(), [](const auto& s) { return !s->whole.is_pure; });
    for (auto step = last.base(); step != run.path.end(); ++step) run_step(**step, run.bindings, true);
  }
  if (is_full) return next;
  const std::unique_lock lock(mutex_);
  now.answers.emplace_back(answer, next);
  return next;
}

std::shared_ptr<Step> Function::make_step(Run& run) {
  auto next = std::make_shared<Step>();
  Step& now = *run.path.back();
  const Call call{run.args, run.call.kwargs};
  CaptureRequest again = request(next->seen);
  again.answers = run.answers;
  again.results = run.args.size() - run.call.args.size();
  if (now.source->open->call) see_inputs(now.results, {result_name(again.results - 1)}, {{run.args.back()}, {}});
  next->seen = now.seen;
  next->seen.insert(now.results.begin(), now.results.end());
  with_books("", [&](CompilationMetrics& metrics) {
    Captured c = captured(std::move(again), call, metrics);
    const size_t answered = c.marks.size() - (c.open ? 1 : 0);
    if (answered != run.answers.size())
      throw UserError("compile: " + options_.name +
                      " asked other questions about its data when it was captured again; is it deterministic?");
    if (c.open) note_break(*c.open, metrics);
    next->guards.emplace(std::move(c.guards));
    next->source = std::make_shared<const Captured>(std::move(c));
    trace_capture(*next->source, *next->guards, metrics);
    debug_capture(*next->source, *next->guards, metrics);
    next->needs = needs_of_last_part(*next->source);
    set_up(*next, run.path, &metrics);
    for (const std::string& need : next->needs) {
      const auto giver =
          std::find_if(run.path.begin(), run.path.end(), [&](const auto& s) { return s->values.contains(need); });
      if (giver == run.path.end())
        throw UserError("compile: " + options_.name +
                        " computed another graph when it was captured again; is it deterministic?");
      (*giver)->wanted.insert(need);
    }
    for (const auto& step : run.path) rebuild_if_needed(*step, &metrics);
    return true;
  });
  return next;
}

// What later parts want by now must be given.
void Function::rebuild_if_needed(Step& step, CompilationMetrics* metrics) {
  if (step.is_end()) return;
  const std::set<std::string>& wanted = step.gives_all ? step.values : step.wanted;
  if (step.built) {
    const std::set<std::string> given(step.built->part.gives.begin(), step.built->part.gives.end());
    if (std::includes(given.begin(), given.end(), wanted.begin(), wanted.end())) return;
  }
  build(step, metrics);
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
