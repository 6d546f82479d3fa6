#include "calque/compile/plan_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <unordered_map>

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

// The middle of "aten.mul.Tensor".
std::string short_name(const std::string& op) {
  const size_t begin = op.find('.') + 1, end = op.find('.', begin);
  return begin == 0 || end == std::string::npos ? op : op.substr(begin, end - begin);
}

std::string op_of(const Node& node) {
  const GraphOwner* owner = node.graph().owner();
  const Graph* fused = node.kind() == NodeKind::call_module && owner ? owner->subgraph(node.target().text()) : nullptr;
  if (!fused) return node.target().str();
  std::string out;
  for (const Node* inner : fused->nodes())
    if (inner->kind() == NodeKind::call_function) out += (out.empty() ? "" : " + ") + short_name(inner->target().str());
  return out;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using HeldStorage = std::pair<const Storage*, int64_t>;

void add_storages(const Value& value, std::vector<HeldStorage>& out) {
  for (const Value& leaf : tree_leaves(value))
    if (leaf.is_tensor() && leaf.to_tensor().defined() && !leaf.to_tensor().is_fake())
      out.emplace_back(leaf.to_tensor().storage().get(), static_cast<int64_t>(leaf.to_tensor().storage()->nbytes()));
}

// What the steps' values hold at the end of each: a value lives until the last step that takes it, and a storage as long as a value in it.
std::vector<int64_t> held_bytes(const Plan& plan, const Values& inputs) {
  std::unordered_map<const Node*, size_t> order;
  std::vector<std::vector<HeldStorage>> given;
  plan.run_watched(inputs, [&](const Node& node, const Value& value) {
    order[&node] = given.size();
    add_storages(value, given.emplace_back());
  });
  std::vector<HeldStorage> others;
  for (const Value& input : inputs) add_storages(input, others);
  if (const Graph* graph = order.empty() ? nullptr : &order.begin()->first->graph(); graph && graph->owner())
    for (const Node* node : graph->nodes())
      if (node->kind() == NodeKind::get_attr) add_storages(graph->owner()->attr(node->target().text()), others);
  std::set<const Storage*> outside;
  for (const auto& [storage, bytes] : others) outside.insert(storage);
  std::vector<size_t> last(given.size());
  for (const auto& [node, step] : order) {
    last[step] = step;
    for (const Node* user : node->users()) {
      const auto at = order.find(user);
      last[step] = std::max(last[step], at == order.end() ? given.size() : at->second);  // the output is no step
    }
  }
  struct Held {
    int64_t bytes;
    size_t until;
  };
  std::unordered_map<const Storage*, Held> held;
  std::vector<int64_t> out;
  int64_t sum = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    for (auto at = held.begin(); at != held.end();)
      if (at->second.until < i) {
        sum -= at->second.bytes;
        at = held.erase(at);
      } else {
        ++at;
      }
    for (const auto& [storage, bytes] : given[i]) {
      if (outside.contains(storage)) continue;
      const auto [at, is_new] = held.try_emplace(storage, bytes, last[i]);
      if (is_new) sum += bytes;
      at->second.until = std::max(at->second.until, last[i]);
    }
    out.push_back(sum);
  }
  return out;
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
  const std::vector<int64_t> memory = held_bytes(plan, inputs);
  const auto begin = Clock::now();
  const auto now = [&] { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count(); };
  for (int i = 0; i < runs; ++i) {
    std::vector<ProfiledStep> steps;
    steps.reserve(plan.num_steps());
    int64_t last = now();
    plan.run_watched(inputs, [&](const Node& node, const Value& value) {
      const int64_t end = now();
      steps.push_back(
          {node.name(), op_of(node), module_of(node), last, end - last, bytes_of(value), memory.at(steps.size())});
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
  return median(std::move(sums));
}

double PlanProfile::median_step_ms(size_t step) const {
  std::vector<double> ms;
  for (const auto& run : runs) ms.push_back(static_cast<double>(run.at(step).duration_ns) / 1e6);
  return median(std::move(ms));
}

int64_t PlanProfile::peak_memory() const {
  int64_t peak = 0;
  for (const auto& run : runs)
    for (const ProfiledStep& step : run) peak = std::max(peak, step.memory);
  return peak;
}

std::vector<ProfileRow> profile_rows(const PlanProfile& profile, ProfileBy by) {
  std::map<std::string, ProfileRow> rows;
  double all = 0;
  for (size_t i = 0; !profile.runs.empty() && i < profile.runs[0].size(); ++i) {
    const ProfiledStep& step = profile.runs[0][i];
    ProfileRow& row = rows[key_of(step, by)];
    const double ms = profile.median_step_ms(i);
    row.ms += ms;
    all += ms;
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
    for (const ProfiledStep& step : profile.runs[i]) {
      events.push_back({{"name", step.op},
                        {"cat", step.module.empty() ? "plan" : step.module},
                        {"ph", "X"},
                        {"ts", static_cast<double>(step.start_ns) / 1e3},
                        {"dur", static_cast<double>(step.duration_ns) / 1e3},
                        {"pid", 1},
                        {"tid", 1},
                        {"args", {{"node", step.name}, {"module", step.module}, {"bytes", step.bytes}, {"run", i}}}});
      events.push_back({{"name", "memory"},
                        {"ph", "C"},
                        {"ts", static_cast<double>(step.start_ns + step.duration_ns) / 1e3},
                        {"pid", 1},
                        {"args", {{"bytes", step.memory}}}});
    }
  const nlohmann::ordered_json out = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace calque
