// The steps of an entry: how they are built, and how they answer a call, one after the other.
#include <algorithm>
#include <bit>

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
#include "compile/function.h"
#include "compile/recording.h"
#include "compile/training.h"

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

// Every question's answer occurred before, or too many did and nothing was written yet.
struct RunEagerly {};

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

// The values that a part computes, by name.
std::set<std::string> values_of(const Part& all) { return {all.gives.begin(), all.gives.end()}; }

size_t count_calls(const GraphModule& module) {
  size_t out = 0;
  for (const Node* n : module.graph().nodes())
    out += n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_module || n->kind() == NodeKind::call_method;
  return out;
}

}  // namespace

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
      // Other backends, and functions of the user's, see the graph as it was captured and are recorded as they run.
      if (!options_.with && options_.backend == "calque")
        if (auto passes = training_graph(built->part.module, examples, backend_, metrics ? *metrics : new_metrics()))
          built->graph = std::move(*passes);
      if (!built->graph.run) built->graph = backend_(built->part.module, examples);
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

Value Function::finish(const Step& step, Values results) const {
  const Captured& c = *step.source;
  const size_t leaves = c.out_spec.num_leaves();
  for (size_t i = 0; i < c.assigned.size(); ++i) c.assigned[i]->tensor.copy_(results[leaves + i].to_tensor());
  results.resize(leaves);
  return c.out_spec.unflatten(results);
}

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

}  // namespace calque::compile_detail
