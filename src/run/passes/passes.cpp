#include "run/passes/passes.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/graph/passes.h"

namespace calque::run {

void StateUses::add(const Tensor& used) {
  for (const auto& [tensor, version] : used_)
    if (tensor.storage().get() == used.storage().get()) return;
  used_.emplace_back(used, used.version());
}

bool StateUses::are_current() const {
  return std::all_of(used_.begin(), used_.end(), [](const auto& u) { return u.first.version() == u.second; });
}

bool remove_unused(PassInput& input) { return input.module.graph().eliminate_dead_code(); }
bool share_equal_calls(PassInput& input) { return eliminate_common_subexpressions(input.module.graph()); }

const std::vector<PlanPass>& plan_passes() {
  static const std::vector<PlanPass> passes = {
      {"remove_unused", true, remove_unused},    {"share_equal_calls", true, share_equal_calls},
      {"fold_state", true, fold_state},          {"fold_batch_norm", false, fold_batch_norm},
      {"find_attention", false, find_attention}, {"fuse_pointwise", true, fuse_pointwise},
      {"pack_weights", false, pack_weights},
  };
  return passes;
}

namespace {

const PlanPass& pass_named(std::string_view name) {
  const std::vector<PlanPass>& passes = plan_passes();
  const auto it = std::find_if(passes.begin(), passes.end(), [&](const PlanPass& p) { return p.name == name; });
  if (it != passes.end()) return *it;
  std::string known;
  for (const PlanPass& p : passes) known += (known.empty() ? "" : ", ") + std::string(p.name);
  throw UserError("plan: no pass is called '" + std::string(name) + "'; the passes are " + known);
}

}  // namespace

bool run_pass(std::string_view name, PassInput& input) {
  const bool changed = pass_named(name).run(input);
  input.module.graph().lint();
  return changed;
}

void run_passes(PassInput& input, const PlanOptions& options) {
  for (const std::string& name : options.without) pass_named(name);
  if (options.after_pass) options.after_pass("", input.module);
  if (!options.optimize) return;
  for (const PlanPass& pass : plan_passes()) {
    const bool wanted = std::find(options.without.begin(), options.without.end(), pass.name) == options.without.end();
    if (!wanted || (options.exact && !pass.is_exact)) continue;
    run_pass(pass.name, input);
    if (options.after_pass) options.after_pass(std::string(pass.name), input.module);
  }
}

}  // namespace calque::run
