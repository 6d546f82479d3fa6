// What ExportedProgram::call runs: a plan of the program.
#include "calque/export/executor.h"

#include "calque/run/plan.h"

namespace calque {
namespace {

class PlanExecutor final : public Executor {
 public:
  explicit PlanExecutor(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Values run(const Values& inputs) const override { return plan_->call(inputs); }
  bool is_current() const override { return plan_->is_current(); }

 private:
  std::shared_ptr<const Plan> plan_;
};

}  // namespace

std::shared_ptr<const Executor> make_plan_executor(const ExportedProgram& program) {
  return std::make_shared<PlanExecutor>(Plan::make(program));
}

}  // namespace calque
