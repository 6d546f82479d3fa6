#include "calque/compile/profiler.h"

#include <algorithm>
#include <map>

#include "calque/base/counters.h"
#include "calque/base/phases.h"

namespace calque {
namespace {

constexpr const char* introduction = R"(
Compile Profiler Report
=======================

Graph Breaks
------------
Graph breaks happen where a function asks for data, or does what cannot be captured.
The reasons are below; passing `fullgraph` stops at the first break.

)";

constexpr const char* about_recompiling = R"(

Recompilation
-------------
These functions were captured more than once because guards failed: a condition that was assumed to be fixed changed, and what
was made before could not serve.

)";

std::string graph_break_report() {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [category, names] : counters().all())
    if (category == "graph_break")
      for (const auto& [reason, count] : names) rows.push_back({reason, std::to_string(count)});
  return rows.empty() ? "No graph breaks detected." : tabulate(rows, {"Graph Break Reason", "Count"});
}

std::string recompilation_report() {
  std::map<std::string, std::vector<std::string>> by_function;
  for (const std::string& text : recompile_reasons()) {
    const size_t colon = text.find(": ");
    by_function[text.substr(0, colon)].push_back(text.substr(std::min(colon + 2, text.size())));
  }
  if (by_function.empty()) return "No recompilation detected.\n";
  std::vector<std::vector<std::string>> rows;
  size_t most = 0;
  for (const auto& [function, reasons] : by_function) {
    most = std::max(most, reasons.size());
    for (size_t i = 0; i < reasons.size(); ++i) {
      std::string last = reasons[i].substr(reasons[i].rfind('\n') + 1);
      rows.push_back({i == 0 ? function : "", i == 0 ? std::to_string(reasons.size()) : "", std::move(last)});
    }
  }
  return tabulate(rows, {"Function", "Recompiles", "Recompile Reasons"}) + "\n\nA recompile_limit of " +
         std::to_string(most + 1) + " avoids that the limit is reached.\n";
}

}  // namespace

Backend CompileProfiler::backend() const {
  return [counts = counts_](std::shared_ptr<GraphModule> graph, const Values& examples) {
    ++counts->frames;
    for (const Node* n : std::as_const(*graph).graph().nodes())
      counts->operators +=
          n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_method || n->kind() == NodeKind::call_module;
    return lookup_backend("eager")(std::move(graph), examples);
  };
}

std::string CompileProfiler::report() const {
  return introduction + graph_break_report() + about_recompiling + recompilation_report();
}

}  // namespace calque
