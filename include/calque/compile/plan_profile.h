// Where the time of a plan goes: each step of some runs, summed by operator or by module, and as a trace that Chrome (chrome://tracing) and
// Perfetto open. A step's time is from the end of the one before it to its own end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calque/op/value.h"

namespace calque {

class Plan;

struct ProfiledStep {
  std::string name;      // of the node
  std::string op;        // "aten.addmm.default"; of fused steps "mul + silu"
  std::string module;    // the path of the innermost module that it was made under; "" for none
  int64_t start_ns = 0;  // since the first run began
  int64_t duration_ns = 0;
  int64_t bytes = 0;   // of the tensors that it gave
  int64_t memory = 0;  // that the values of the run hold at its end, a storage once; inputs and the plan's own tensors aside
};

struct PlanProfile {
  std::vector<std::vector<ProfiledStep>> runs;
  double median_run_ms() const;
  double median_step_ms(size_t step) const;
  int64_t peak_memory() const;  // at any step's end
};
// UserError for fewer than one run. Runs before those that count are not recorded.
PlanProfile profile_plan(const Plan& plan, const Values& inputs, int runs = 10, int warm_up = 2);

struct ProfileRow {
  std::string name;
  int64_t calls = 0;  // in one run
  double ms = 0;      // in one run: the sum of its steps' medians
  double share = 0;   // of all steps' time
  int64_t bytes = 0;  // in one run
};
enum class ProfileBy : uint8_t { op, module, step };
std::vector<ProfileRow> profile_rows(const PlanProfile& profile, ProfileBy by);  // what takes most first

// Each step as a slice, what it held as a counter.
std::string profile_chrome_trace(const PlanProfile& profile);
// A page that needs nothing else: the steps of a run below their modules, the memory over them, and tables.
std::string profile_html(const PlanProfile& profile, const std::string& name);

}  // namespace calque
