// What ExportedProgram::call runs: a plan of the program. Packing weights takes longer than a call saves, so the first call has a plan
// without, and the second makes the one that stays. Weights that came packed with the program are there for the first.
#include "calque/export/executor.h"

#include <mutex>
#include <optional>

#include "calque/run/plan.h"
#include "run/planned_graph.h"
#include "run/stored_weights.h"

namespace calque {
namespace {

class PlanExecutor final : public Executor {
 public:
  explicit PlanExecutor(const ExportedProgram& program) {
    run::PlannedGraph planned = run::planned_graph(program);
    if (planned.stored && !planned.stored->empty()) {
      plan_ = run::plan_of(std::move(planned), {});
    } else {
      plan_ = run::plan_of(std::move(planned), unpacked());
      program_ = run::planned_graph(program);
    }
  }

  Values run(const Values& inputs) const override { return plan()->call(inputs); }

  bool is_current() const override {
    const std::lock_guard lock(mutex_);
    return plan_->is_current();
  }

 private:
  static PlanOptions unpacked() {
    PlanOptions options;
    options.without = {"pack_weights"};
    return options;
  }

  std::shared_ptr<const Plan> plan() const {
    const std::lock_guard lock(mutex_);
    if (was_called_ && program_) {
      plan_ = run::plan_of(std::move(*program_), {});
      program_.reset();
    }
    was_called_ = true;
    return plan_;
  }

  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<const Plan> plan_;
  mutable bool was_called_ = false;
  mutable std::optional<run::PlannedGraph> program_;  // until the second call
};

}  // namespace

std::shared_ptr<const Executor> make_plan_executor(const ExportedProgram& program) {
  return std::make_shared<PlanExecutor>(program);
}

}  // namespace calque
