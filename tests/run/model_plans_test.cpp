// Every class of every architecture: its program by a plan and by the interpreter, step by step.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "calque/export/export.h"
#include "calque/export/input_checks.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/run/check.h"
#include "support/paths.h"

namespace calque::model_plans_test {
namespace {

std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(test::source_folder()) / "tests/zoo/golden"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(ModelPlans, every_class_gives_what_the_interpreter_gives_at_every_step) {
  const NoGradGuard no_grad;
  size_t classes = 0, steps = 0;
  for (const std::string& folder : golden_folders()) {
    const Config config =
        from_pretrained(std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / folder)->config();
    for (const ModelClass& one : model_registry().find(config.model_type())->classes) {
      const auto model = from_config(config, {.model_class = one.name});
      model->eval();
      const Kwargs inputs = model->example_inputs({.batch = 3, .length = 6}).to_kwargs(model->arguments());
      std::optional<ExportedProgram> program;
      try {
        program.emplace(export_program(*model, {}, inputs));
      } catch (const UserError& e) {
        ADD_FAILURE() << one.name << " is not exported: " << e.what();
        continue;
      }
      const PlanCheck check = check_plan(*program, InputChecks(*program)({}, inputs));
      for (const PlanDifference& d : check.differences) ADD_FAILURE() << one.name << ": " << d.node << "\n" << d.what;
      PlanOptions exact;
      exact.exact = true;
      const PlanCheck bits = check_plan(*program, InputChecks(*program)({}, inputs), exact);
      EXPECT_EQ(bits.compared, bits.equal_bits) << one.name;
      ++classes;
      steps += check.compared;
    }
  }
  EXPECT_GT(classes, 300U);
  EXPECT_GT(steps, 10000U);
}

}  // namespace
}  // namespace calque::model_plans_test
