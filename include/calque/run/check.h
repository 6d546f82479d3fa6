// A reference run of a plan: each value that it computes beside the one that the interpreter computes, on the same inputs and the same
// state. Values of equal bits are equal; others are judged beside a float64 run of the interpreter, by the bounds that the sweep of operators
// has: a result alone may be off by 1e-4 of its size (float32; float16 2e-2, bfloat16 1e-1, float64 1e-12) or four times the interpreter's error, a
// hundred of them together by 1.5 times the interpreter's root mean square and half a unit of the last place. Nothing of the program is changed.
#pragma once

#include <string>
#include <vector>

#include "calque/run/plan.h"

namespace calque {

struct PlanDifference {
  std::string node;  // the plan's, in text form
  std::string what;  // "3 of 768 numbers differ, by 4.8e-07 at most"
};

struct PlanCheck {
  size_t compared = 0;    // values of steps that have a node of the same name in the program
  size_t equal_bits = 0;  // of these, to the last bit
  // Where kind, sizes, strides, dtype or need of gradients differ, or numbers by more than the bounds; in order.
  std::vector<PlanDifference> differences;
  Values results;  // the plan's
  bool passed() const { return differences.empty(); }
};

// `inputs` as Plan::run takes them. Inputs that the program writes are copied first. Random numbers start from one state in both.
PlanCheck check_plan(const ExportedProgram& program, const Values& inputs, const PlanOptions& options = {});
PlanCheck check_plan(const GraphModule& module, const Values& inputs, const PlanOptions& options = {});

}  // namespace calque
