// calque bench MODEL: how long a call takes, by a plan or eagerly.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "calque/base/thread.h"
#include "calque/compile/compile.h"
#include "calque/export/executor.h"
#include "calque/export/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/workload.h"

namespace calque::cli {
namespace {

struct Measured {
  double first_ms = 0;     // what a first call makes is in it
  size_t warm_up = 0;      // calls after the first that do not count
  std::vector<double> ms;  // sorted; not empty
  double at(double share) const {
    const double place = share * static_cast<double>(ms.size() - 1);
    const auto below = static_cast<size_t>(place);
    return std::lerp(ms[below], ms[std::min(below + 1, ms.size() - 1)], place - static_cast<double>(below));
  }
};

Measured measured(const std::function<void()>& call, const std::optional<size_t>& runs) {
  using Clock = std::chrono::steady_clock;
  constexpr double warm_up_ms = 300, all_ms = 2000;
  constexpr size_t least_warm_up = 2;  // a program keeps the plan of its second call
  constexpr size_t least_runs = 3;
  const auto timed = [&] {
    const auto begin = Clock::now();
    call();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  Measured out;
  out.first_ms = timed();
  for (double sum = 0; out.warm_up < least_warm_up || (!runs && sum < warm_up_ms); ++out.warm_up) sum += timed();
  for (double sum = 0; runs ? out.ms.size() < *runs : out.ms.size() < least_runs || sum < all_ms; sum += out.ms.back())
    out.ms.push_back(timed());
  std::ranges::sort(out.ms);
  return out;
}

// Four digits, or a microsecond's tenth.
std::string in_ms(double ms) { return fmt::format("{:.{}f}", ms, ms < 10 ? 4 : ms < 1000 ? 2 : 0); }

}  // namespace

void run_bench(const BenchOptions& o) {
  const Workload work = load_workload("bench", o);
  const GradModeScope no_grad(false);
  std::optional<Compiled> compiled;
  std::function<void()> call;
  if (work.program) {
    if (o.eager) set_executor_factory(nullptr);
    call = [&, values = work.input_values()] { work.program->run_flat(values); };
  } else if (o.eager) {
    call = [&] { work.module->call({}, work.inputs); };
  } else {
    compiled = compile(work.module);
    call = [&] { compiled->call({}, work.inputs); };
  }
  Measured m;
  {
    const Progress progress("measuring " + o.path);
    m = measured(call, o.runs);
  }
  const size_t graphs = compiled ? compiled->graphs().size() : 0, breaks = compiled ? compiled->graph_breaks().size() : 0;
  const char* ran = work.program ? (o.eager ? "interpreter" : "plan") : o.eager ? "eager" : "compiled";
  if (o.json) {
    OrderedJson json{{"path", o.path}, {"ran", ran}, {"threads", num_threads()}, {"inputs", inputs_json(work.inputs)}};
    if (compiled) json.update({{"graphs", graphs}, {"graph_breaks", breaks}});
    json.update({{"first_ms", m.first_ms},
                 {"warm_up", m.warm_up},
                 {"runs", m.ms.size()},
                 {"median_ms", m.at(0.5)},
                 {"fastest_ms", m.at(0)},
                 {"lower_quartile_ms", m.at(0.25)},
                 {"upper_quartile_ms", m.at(0.75)},
                 {"slowest_ms", m.at(1)}});
    return print_json(json);
  }
  fmt::print("{}: {}, {} thread{}\n", printable(o.path), ran, num_threads(), num_threads() == 1 ? "" : "s");
  if (compiled) fmt::print("{} graph{}, {} graph break{}\n", graphs, graphs == 1 ? "" : "s", breaks, breaks == 1 ? "" : "s");
  Table table({{"runs", Table::Align::right},
               {"median ms", Table::Align::right},
               {"fastest", Table::Align::right},
               {"lower quartile", Table::Align::right},
               {"upper quartile", Table::Align::right},
               {"slowest", Table::Align::right},
               {"first call", Table::Align::right}});
  table.add({with_thousands(m.ms.size()), in_ms(m.at(0.5)), in_ms(m.at(0)), in_ms(m.at(0.25)), in_ms(m.at(0.75)),
             in_ms(m.at(1)), in_ms(m.first_ms)});
  fmt::print("\n{}\n{}", inputs_table(work.inputs), table.str());
}

}  // namespace calque::cli
