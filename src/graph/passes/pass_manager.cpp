#include <algorithm>
#include <deque>

#include "calque/base/error.h"
#include "calque/graph/passes.h"

namespace calque {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string s = "[";
  for (size_t i = 0; i < names.size(); ++i) s += (i ? ", '" : "'") + names[i] + "'";
  return s + "]";
}

}  // namespace

void PassManager::add_pass(Pass pass) {
  passes_.push_back(std::move(pass));
  validated_ = false;
}

void PassManager::add_before_constraint(std::string first, std::string later) {
  constraints_.emplace_back(std::move(first), std::move(later));
  validated_ = false;
}

std::vector<std::string> PassManager::order() const {
  std::vector<std::string> names;
  for (const Pass& p : passes_) names.push_back(p.name);
  return names;
}

void PassManager::validate_constraints() {
  for (const auto& [first, later] : constraints_)
    for (size_t i = 0; i < passes_.size(); ++i)
      for (size_t j = i + 1; j < passes_.size(); ++j)
        if (passes_[i].name == later && passes_[j].name == first)
          throw UserError("pass schedule constraint violated. Expected " + first + " before " + later + " but found " +
                          later + " at index " + std::to_string(i) + " and " + first + " at index " + std::to_string(j) +
                          " in pass list.");
  validated_ = true;
}

void PassManager::solve_constraints() {
  // Candidates are taken in the order given: without constraints nothing moves.
  std::vector<size_t> waiting_for(passes_.size());
  const auto must_wait = [&](size_t pass, size_t other) {
    return std::any_of(constraints_.begin(), constraints_.end(),
                       [&](const auto& c) { return c.first == passes_[other].name && c.second == passes_[pass].name; });
  };
  for (size_t i = 0; i < passes_.size(); ++i)
    for (size_t j = 0; j < passes_.size(); ++j)
      if (i != j && must_wait(i, j)) ++waiting_for[i];
  std::deque<size_t> ready;
  for (size_t i = 0; i < passes_.size(); ++i)
    if (waiting_for[i] == 0) ready.push_back(i);
  std::vector<Pass> sorted;
  std::vector<bool> placed(passes_.size());
  while (!ready.empty()) {
    const size_t p = ready.front();
    ready.pop_front();
    placed[p] = true;
    sorted.push_back(passes_[p]);
    for (size_t i = 0; i < passes_.size(); ++i)
      if (i != p && must_wait(i, p) && --waiting_for[i] == 0) ready.push_back(i);
  }
  if (sorted.size() != passes_.size()) {
    std::vector<std::string> cycle;
    for (size_t i = 0; i < passes_.size(); ++i)
      if (!placed[i]) cycle.push_back(passes_[i].name);
    throw UserError("Circular dependency detected within the following passes: " + listed(cycle));
  }
  passes_ = std::move(sorted);
  validated_ = true;
}

std::string PassManager::failure_of(size_t pass) const {
  std::vector<std::string> done = order();
  done.resize(pass);
  return "An error occurred when running the '" + passes_[pass].name + "' pass after the following passes: " + listed(done) +
         "\n";
}

bool PassManager::run(GraphModule& module) {
  if (!validated_) solve_constraints();
  bool ever_changed = false;
  for (size_t step = 0; step < steps_; ++step) {
    bool changed = false;
    for (size_t i = 0; i < passes_.size(); ++i) {
      try {
        changed |= passes_[i].run(module);
        module.graph().lint();
        if (check_) check_(module);
      } catch (Error& e) {
        e.prepend(failure_of(i));
        throw;
      } catch (const std::exception& e) {
        throw UserError(failure_of(i) + e.what());
      }
    }
    ever_changed |= changed;
    if (!changed) break;
  }
  return ever_changed;
}

}  // namespace calque
