// From SymBool to bool: guards, their fallbacks, and deferred asserts.
#include <algorithm>

#include "calque/base/error.h"
#include "sym/env_impl.h"
#include "sym/evaluate.h"

namespace calque {

namespace {

thread_local std::string_view current_operator;

std::string place(std::source_location where) {
  std::string out;
  if (!current_operator.empty()) out = "in operator " + std::string(current_operator) + ", ";
  return out + "at " + where.file_name() + ":" + std::to_string(where.line());
}

bool mentions_kept_symbol(const Knowledge& knowledge, const Expr* e) {
  const std::vector<size_t> free = knowledge.free_symbols(e);
  return std::ranges::any_of(free, [&](size_t i) { return knowledge.symbols()[i].keeps_zero_one; });
}

// x == 0, x != 1, x > 0, x >= 1, x > 1, x >= 2 and their like: what asks whether a size is empty or broadcasts.
bool asks_about_zero_or_one(ExprKind kind, int64_t number, bool number_is_right) {
  if (!number_is_right) {  // 2 > x is x < 2
    switch (kind) {
      case ExprKind::lt: kind = ExprKind::gt; break;
      case ExprKind::le: kind = ExprKind::ge; break;
      case ExprKind::gt: kind = ExprKind::lt; break;
      case ExprKind::ge: kind = ExprKind::le; break;
      default: break;
    }
  }
  if (number == 0 || number == 1) return true;
  return number == 2 && (kind == ExprKind::lt || kind == ExprKind::ge);
}

// A named dimension stays dynamic: such a comparison of it is not decided by its example.
bool is_left_open(const Knowledge& knowledge, const Expr* e) {
  if (is_relation(e->kind())) {
    const Expr* a = e->arg(0);
    const Expr* b = e->arg(1);
    if (b->is_integer() && asks_about_zero_or_one(e->kind(), b->integer(), true)) return mentions_kept_symbol(knowledge, a);
    if (a->is_integer() && asks_about_zero_or_one(e->kind(), a->integer(), false)) return mentions_kept_symbol(knowledge, b);
    return false;
  }
  return std::ranges::any_of(e->args(), [&](const Expr* a) { return a->is_boolean() && is_left_open(knowledge, a); });
}

}  // namespace

GuardOperatorScope::GuardOperatorScope(std::string_view name) : before_(current_operator) { current_operator = name; }
GuardOperatorScope::~GuardOperatorScope() { current_operator = before_; }

void ShapeEnv::Impl::throw_data_dependent(const Expr* e, std::source_location where) {
  throw UserError(ErrorKind::data_dependent,
                  "cannot decide " + e->str() +
                      " while tracing: it depends on values that are only known when the program runs (" + place(where) +
                      "). If it always holds, say so with check(); if either answer will do, use guard_or().");
}

void ShapeEnv::Impl::record(const Expr* holds, std::source_location where) {
  guards.push_back({SymBool(holds), std::string(current_operator), where});
  knowledge.learn(holds);
}

bool ShapeEnv::Impl::guard(const Expr* boolean, std::source_location where) {
  if (const std::optional<bool> known = knowledge.decide(boolean)) return *known;
  const Expr* asked = boolean;
  if (boolean->has_unbacked()) {  // what cannot be known may cancel out
    boolean = knowledge.canonical(knowledge.simplify(boolean));
    if (boolean->has_unbacked()) throw_data_dependent(asked, where);
  }
  const std::optional<Number> value = evaluate_expr(boolean, [&](size_t i) { return knowledge.symbols()[i].hint; });
  if (!value) throw_data_dependent(boolean, where);
  const bool holds = value->integer != 0;
  record(holds ? boolean : pool.logical_not(boolean), where);
  return holds;
}

bool ShapeEnv::Impl::guard_or(const Expr* boolean, bool otherwise, std::source_location where) {
  if (const std::optional<bool> known = knowledge.decide(boolean)) return *known;
  const Expr* simplified = boolean->has_unbacked() ? knowledge.canonical(knowledge.simplify(boolean)) : boolean;
  if (simplified->has_unbacked() || is_left_open(knowledge, boolean)) return otherwise;
  const std::optional<Number> value = evaluate_expr(simplified, [&](size_t i) { return knowledge.symbols()[i].hint; });
  if (!value) return otherwise;
  return guard(simplified, where);
}

bool ShapeEnv::Impl::expect_true(const Expr* boolean, std::source_location where) {
  if (const std::optional<bool> known = knowledge.decide(boolean)) return *known;
  const std::optional<Number> value = evaluate_expr(boolean, [&](size_t i) { return knowledge.symbols()[i].hint; });
  if (value && !boolean->has_unbacked()) {
    if (value->integer == 0) return false;
    record(boolean, where);
    return true;
  }
  deferred_asserts.push_back(SymBool(knowledge.canonical(boolean)));
  knowledge.learn(boolean);
  return true;
}

int64_t ShapeEnv::Impl::specialize(const Expr* integer, std::source_location where) {
  const Expr* e = knowledge.simplify(integer);
  if (e->is_integer()) return e->integer();
  const std::optional<Number> value = evaluate_expr(e, [&](size_t i) { return knowledge.symbols()[i].hint; });
  if (e->has_unbacked() || !value) throw_data_dependent(e, where);
  record(pool.relation(ExprKind::eq, integer, pool.integer(value->integer)), where);
  return value->integer;
}

double ShapeEnv::Impl::specialize_float(const Expr* real, std::source_location where) {
  const Expr* e = knowledge.simplify(real);
  if (e->kind() == ExprKind::float_number) return e->float_value();
  const std::optional<Number> value = evaluate_expr(e, [&](size_t i) { return knowledge.symbols()[i].hint; });
  if (e->has_unbacked() || !value) throw_data_dependent(e, where);
  const Expr* condition = pool.relation(ExprKind::eq, real, pool.float_number(value->as_double()));
  if (!knowledge.decide(condition)) record(condition, where);
  return value->as_double();
}

}  // namespace calque
