// Plan: a graph made ready to run many times. Values have dense ids, operators and schemas are resolved, what depends on the
// state alone is computed, values go at their last use; passes (run/passes.h) rewrite the graph first. One plan serves all sizes that
// the program allows: sizes are values like others. A plan is immutable; any number of threads may call it at once. It shares
// the program's tensors, and refers to nothing else of it. Calls that record gradients of
// its state run the graph as it was, without passes. docs/plans.md tells more.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calque/op/value.h"

namespace calque {

class ExportedProgram;
class Graph;
class GraphModule;
class Plan;
struct PlanOptions;
namespace run {
struct PlannedGraph;
std::shared_ptr<const Plan> plan_of(PlannedGraph&& planned, const PlanOptions& options);
}  // namespace run

struct PlanOptions {
  bool exact = false;                // eager's bits: passes that change how results are rounded are left out
  bool optimize = true;              // false: no passes at all
  std::vector<std::string> without;  // passes left out, by name (run/passes.h)
  // Called with each pass' name and the graph that it left, in the order in which they run; "" before the first.
  std::function<void(const std::string& pass, const GraphModule& graph)> after_pass = {};
};

class Plan {
 public:
  // UserError for an option that names no pass. What a graph has wrong shows when the plan runs.
  static std::shared_ptr<const Plan> make(const ExportedProgram& program, const PlanOptions& options = {});
  static std::shared_ptr<const Plan> make(const GraphModule& module, const PlanOptions& options = {});
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // `inputs` in the order of the placeholders; of a program the user's alone, flattened. Gives what the graph returns: of a
  // program the tensors to be written back first, in the order of its output specs. Modes that are active see every call.
  Value run(const Values& inputs) const;
  // The same as a list: the items of a list or tuple, else the one value.
  Values call(const Values& inputs) const;
  // Runs with `watch` called after each step, on the node that the step was made from (of graph()) and its value.
  using Watch = std::function<void(const Node& node, const Value& value)>;
  Value run_watched(const Values& inputs, const Watch& watch) const;

  // Whether what was computed from the state, or packed, still says what the state says.
  bool is_current() const;
  const Graph& graph() const;  // as the passes left it
  size_t num_steps() const;
  size_t num_values() const;  // that a call keeps room for
  // Of the places that a call's results take in turns, over the program's sizes; good as long as the plan.
  std::vector<SymInt> slot_bytes() const;
  size_t packed_bytes() const;  // of copies that this plan made of the state
  // Steps, what goes after each, and what was computed once: for people.
  std::string describe() const;

 private:
  struct Parts;
  explicit Plan(std::unique_ptr<const Parts> parts);
  friend std::shared_ptr<const Plan> run::plan_of(run::PlannedGraph&& planned, const PlanOptions& options);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace calque
