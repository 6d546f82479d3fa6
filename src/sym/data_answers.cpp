#include "calque/sym/data_answers.h"

#include <utility>

#include "calque/base/error.h"
#include "sym/env_impl.h"

namespace calque {

DataAnswersScope::DataAnswersScope(ShapeEnv& env, DataAnswers& answers)
    : env_(env), before_(std::exchange(env.impl().answers, &answers)) {}
DataAnswersScope::~DataAnswersScope() { env_.impl().answers = before_; }

std::optional<Number> ShapeEnv::Impl::answered(const Expr* e, std::source_location where) {
  if (answers == nullptr) return std::nullopt;
  where = user_line(where);
  if (e->is_boolean()) {
    const std::optional<DataAnswer> answer = answers->answer(SymBool(e), where);
    if (!answer) return std::nullopt;
    const bool holds = std::get<bool>(*answer);
    learn(holds ? e : pool.logical_not(e));
    return Number(static_cast<int64_t>(holds));
  }
  const bool real = e->is_float();
  const std::optional<DataAnswer> answer = answers->answer(real ? SymNumber(SymFloat(e)) : SymNumber(SymInt(e)), where);
  if (!answer) return std::nullopt;
  // A float is not learnt: its comparisons would have to know of NaN. Each question of it is answered anew.
  if (real) return Number(std::get<double>(*answer));
  learn(pool.relation(ExprKind::eq, e, pool.integer(std::get<int64_t>(*answer))));
  return Number(std::get<int64_t>(*answer));
}

std::optional<DataAnswer> ask_data(const SymNumber& number, std::source_location where) {
  const Expr* e = std::visit([](auto n) { return n.expr(); }, number);
  if (e == nullptr || !e->has_unbacked()) return std::nullopt;
  const std::optional<Number> found = e->env()->impl().answered(e, where);
  if (!found) return std::nullopt;
  if (e->is_boolean()) return found->integer != 0;
  if (e->is_float()) return found->as_double();
  return found->integer;
}

}  // namespace calque
