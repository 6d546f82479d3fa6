#include "calque/compile/plan_profile.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/graph/graph.h"
#include "calque/op/tree.h"
#include "calque/run/plan.h"

namespace calque {
namespace {

int64_t bytes_of(const Value& value) {
  int64_t out = 0;
  for (const Value& leaf : tree_leaves(value))
    if (leaf.is_tensor() && !leaf.to_tensor().is_fake()) out += static_cast<int64_t>(leaf.to_tensor().nbytes());
  return out;
}

std::string module_of(const Node& node) {
  const auto& stack = node.meta.nn_module_stack;
  return stack && !stack->empty() ? stack->back().path : "";
}

const std::string& key_of(const ProfiledStep& step, ProfileBy by) {
  switch (by) {
    case ProfileBy::op: return step.op;
    case ProfileBy::module: return step.module;
    case ProfileBy::step: return step.name;
  }
  throw InternalError("a profile by nothing");
}

}  // namespace

PlanProfile profile_plan(const Plan& plan, const Values& inputs, int runs, int warm_up) {
  using Clock = std::chrono::steady_clock;
  if (runs < 1) throw UserError("profile: expected at least one run, found " + std::to_string(runs));
  for (int i = 0; i < warm_up; ++i) plan.run(inputs);
  PlanProfile out;
  const auto begin = Clock::now();
  const auto now = [&] { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count(); };
  for (int i = 0; i < runs; ++i) {
    std::vector<ProfiledStep> steps;
    steps.reserve(plan.num_steps());
    int64_t last = now();
    plan.run_watched(inputs, [&](const Node& node, const Value& value) {
      const int64_t end = now();
      steps.push_back({node.name(), node.target().str(), module_of(node), last, end - last, bytes_of(value)});
      last = now();  // what the books cost is no step's
    });
    out.runs.push_back(std::move(steps));
  }
  return out;
}

double PlanProfile::median_run_ms() const {
  std::vector<double> sums;
  for (const auto& run : runs) {
    double ns = 0;
    for (const ProfiledStep& step : run) ns += static_cast<double>(step.duration_ns);
    sums.push_back(ns / 1e6);
  }
  if (sums.empty()) return 0;
  std::nth_element(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2), sums.end());
  return sums[sums.size() / 2];
}

std::vector<ProfileRow> profile_rows(const PlanProfile& profile, ProfileBy by) {
  std::map<std::string, ProfileRow> rows;
  double all = 0;
  const auto runs = static_cast<double>(std::max<size_t>(profile.runs.size(), 1));
  for (size_t i = 0; i < profile.runs.size(); ++i)
    for (const ProfiledStep& step : profile.runs[i]) {
      ProfileRow& row = rows[key_of(step, by)];
      const double ms = static_cast<double>(step.duration_ns) / 1e6 / runs;
      row.ms += ms;
      all += ms;
      if (i != 0) continue;
      ++row.calls;
      row.bytes += step.bytes;
    }
  std::vector<ProfileRow> out;
  for (auto& [name, row] : rows) {
    row.name = name;
    row.share = all == 0 ? 0 : row.ms / all;
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [](const ProfileRow& a, const ProfileRow& b) { return a.ms > b.ms; });
  return out;
}

std::string profile_chrome_trace(const PlanProfile& profile) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (size_t i = 0; i < profile.runs.size(); ++i)
    for (const ProfiledStep& step : profile.runs[i])
      events.push_back({{"name", step.op},
                        {"cat", step.module.empty() ? "plan" : step.module},
                        {"ph", "X"},
                        {"ts", static_cast<double>(step.start_ns) / 1e3},
                        {"dur", static_cast<double>(step.duration_ns) / 1e3},
                        {"pid", 1},
                        {"tid", 1},
                        {"args", {{"node", step.name}, {"module", step.module}, {"bytes", step.bytes}, {"run", i}}}});
  const nlohmann::ordered_json out = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace calque
