// The graph that a plan is made from: a copy of a program's or a module's, for passes to change. What is state in the program is
// an attribute here, so that what depends on the state alone can be told from what depends on the inputs.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "calque/export/program.h"
#include "calque/graph/graph_module.h"
#include "calque/run/plan.h"

namespace calque::run {

class StoredWeights;

struct PlannedGraph {
  std::shared_ptr<GraphModule> module;
  std::set<std::string, std::less<>> written;  // attributes that a call of the program writes back to
  std::shared_ptr<const StoredWeights> stored = {};
};
PlannedGraph planned_graph(const ExportedProgram& program);
PlannedGraph planned_graph(const GraphModule& module);

std::shared_ptr<const Plan> plan_of(PlannedGraph&& planned, const PlanOptions& options);

}  // namespace calque::run
