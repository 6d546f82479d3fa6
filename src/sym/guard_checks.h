// The checks of ProducedGuards in a form that a compiled function can run without making text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/sym/expr.h"
#include "calque/sym/produce_guards.h"

namespace calque {

struct RunnableCheck {
  InputCheck::Kind kind;
  const Expr* expr = nullptr;  // the environment's, which the guards keep alive
  std::string source;          // of an equality, range or not_nan: the input
  ValueRange range;
  std::string text;
  std::string verbose;
};

struct GuardChecks {
  ProducedGuards guards;
  std::vector<RunnableCheck> checks;
  std::vector<std::pair<size_t, std::string>> symbols;  // with the source that binds each
};
GuardChecks collect_guard_checks(ShapeEnv& env, const std::vector<Placeholder>& placeholders);

}  // namespace calque
