// From SymBool to bool: guards, their fallbacks, and deferred asserts.
#include <algorithm>
#include <utility>

#include "calque/base/call_site.h"
#include "calque/base/error.h"
#include "calque/sym/unbacked.h"
#include "sym/env_impl.h"
#include "sym/evaluate.h"

namespace calque {

namespace {

std::string place(std::source_location where) {
  const ThreadContext& context = thread_context();
  std::string out;
  if (!context.guard_operator.empty()) out = "in operator " + std::string(context.guard_operator) + ", ";
  if (!context.guard_module.empty()) out += "in module " + std::string(context.guard_module) + ", ";
  return out + "at " + where.file_name() + ":" + std::to_string(where.line());
}

}  // namespace

std::source_location user_line(std::source_location where) {
  const ThreadContext& context = thread_context();
  if (context.guard_operator.empty() || context.call_site == nullptr) return where;
  const std::source_location site = context.call_site->where;
  return site.line() != 0 ? site : where;
}

ErrorOnNewGuards::ErrorOnNewGuards(ShapeEnv& env) : env_(env), before_(env.impl().error_on_new_guards) {
  env_.impl().error_on_new_guards = true;
}
ErrorOnNewGuards::~ErrorOnNewGuards() { env_.impl().error_on_new_guards = before_; }

GuardOrigin origin_at(std::source_location where) {
  return {std::string(thread_context().guard_operator), std::string(thread_context().guard_module), where};
}

void ShapeEnv::Impl::throw_data_dependent(const Expr* e, std::source_location where) {
  std::string sizes;
  for (const size_t i : knowledge.free_symbols(e))
    if (knowledge.symbols()[i].size_like) sizes += (sizes.empty() ? "" : ", ") + knowledge.symbols()[i].name;
  const std::string fixes = e->is_boolean() ? "If it always holds, say so with check(" + e->str() +
                                                  "); if it never does, with check(" + pool.logical_not(e)->str() + "); "
                                            : "";
  throw UserError(ErrorKind::data_dependent, "could not guard on data-dependent expression " + e->str() +
                                                 ": it depends on values that are only known when the program runs (" +
                                                 place(where) + "; of these, sizes: " + (sizes.empty() ? "none" : sizes) +
                                                 "). " + fixes + "if either answer will do, use guard_or().");
}

std::optional<Number> ShapeEnv::Impl::hint_of(const Expr* e) {
  return evaluate_expr(e, [&](size_t i) { return knowledge.hint(i); });
}

void ShapeEnv::Impl::learn(const Expr* holds) {
  const Expr* before = std::exchange(learning, holds);
  try {
    knowledge.learn(holds);
  } catch (...) {
    learning = before;
    throw;
  }
  learning = before;
}

void ShapeEnv::Impl::record(const Expr* holds, std::source_location where, bool size_oblivious) {
  where = user_line(where);
  if (thread_context().guards_suppressed) {
    note({.kind = LogRecord::Kind::suppressed_guard, .subject = holds, .range = {}, .text = {}, .origin = origin_at(where)});
    return;
  }
  if (error_on_new_guards)
    throw UserError(ErrorKind::constraint_violation,
                    "a new guard was needed where none may be taken: " + holds->str() + " (" + place(where) + ")");
  note({.kind = frozen ? LogRecord::Kind::late_guard : LogRecord::Kind::guard,
        .subject = holds,
        .range = {},
        .text = {},
        .origin = origin_at(where)});
  const GuardOrigin origin = origin_at(where);
  guards.push_back({SymBool(holds), origin.operator_name, where, origin.module_path, size_oblivious});
  asked_at = where;
  learn(holds);
}

void ShapeEnv::Impl::defer(const Expr* holds, std::source_location where, const Expr* canonical) {
  if (canonical == nullptr) canonical = knowledge.canonical(holds);
  where = user_line(where);
  if (thread_context().guards_suppressed) {
    note({.kind = LogRecord::Kind::suppressed_guard, .subject = holds, .range = {}, .text = {}, .origin = origin_at(where)});
    return;
  }
  if (error_on_new_guards)
    throw UserError(ErrorKind::constraint_violation,
                    "a new runtime assert was needed where none may be taken: " + holds->str() + " (" + place(where) + ")");
  note({.kind = LogRecord::Kind::runtime_assert, .subject = canonical, .range = {}, .text = {}, .origin = origin_at(where)});
  // The youngest data in it; every value that it needs exists by then.
  std::string last;
  for (const size_t i : knowledge.free_symbols(canonical))
    if (knowledge.node(i)->has_unbacked()) last = knowledge.symbols()[i].name;
  const std::string message = std::string(where.file_name()) + ":" + std::to_string(where.line());
  deferred_asserts.push_back(SymBool(canonical));
  runtime_asserts.push_back({SymBool(canonical), last, message, origin_at(where)});
  asked_at = where;
  learn(holds);
}

bool ShapeEnv::Impl::guard(const Expr* boolean, std::source_location where, bool size_oblivious) {
  Knowledge::Premises oblivious{.size_oblivious = true};
  const std::optional<bool> decided =
      size_oblivious ? knowledge.decide_under(boolean, oblivious) : knowledge.decide(boolean);
  if (decided) return *decided;
  const Expr* asked = boolean;
  if (boolean->has_unbacked()) {  // what cannot be known may cancel out
    boolean = knowledge.canonical(knowledge.simplify(boolean));
    if (boolean->has_unbacked()) {
      if (const std::optional<Number> answer = answered(boolean, where)) return answer->integer != 0;
      throw_data_dependent(asked, where);
    }
  }
  const std::optional<Number> value = hint_of(boolean);
  if (!value) throw_data_dependent(boolean, where);
  const bool holds = value->integer != 0;
  const Expr* condition = holds ? boolean : pool.logical_not(boolean);
  if (defers_guards && !thread_context().guards_suppressed) {
    asked_at = user_line(where);
    const Expr* canonical = knowledge.canonical(condition);
    learn(condition);
    // What ranges and replacements say by now needs no assert.
    Knowledge::Premises ranges_only{.use_facts = false};
    if (!knowledge.decide_under(knowledge.replace_undecided(condition), ranges_only)) defer(condition, where, canonical);
  } else {
    record(condition, where, size_oblivious);
  }
  return holds;
}

bool ShapeEnv::Impl::guard_or(const Expr* boolean, bool otherwise, std::source_location where) {
  if (const std::optional<bool> known = knowledge.decide(boolean)) return *known;
  const Expr* simplified = boolean->has_unbacked() ? knowledge.canonical(knowledge.simplify(boolean)) : boolean;
  if (simplified->has_unbacked() || !hint_of(simplified)) {
    note({.kind = LogRecord::Kind::assumption,
          .subject = boolean,
          .range = {},
          .number = otherwise ? 1 : 0,
          .text = {},
          .origin = origin_at(where)});
    return otherwise;
  }
  return guard(simplified, where);
}

bool ShapeEnv::Impl::expect_true(const Expr* boolean, std::source_location where) {
  if (const std::optional<bool> known = knowledge.decide(boolean)) return *known;
  const std::optional<Number> value = hint_of(boolean);
  if (value && value->integer == 0) return false;
  if (value && !boolean->has_unbacked() && !options.prefer_deferred_runtime_asserts)
    record(boolean, where);
  else
    defer(boolean, where);
  return true;
}

int64_t ShapeEnv::Impl::specialize(const Expr* integer, std::source_location where) {
  const Expr* e = knowledge.simplify(integer);
  if (e->is_integer()) return e->integer();
  if (e->has_unbacked())
    if (const std::optional<Number> answer = answered(e, where)) return answer->integer;
  const std::optional<Number> value = hint_of(e);
  if (e->has_unbacked() || !value) throw_data_dependent(e, where);
  record(pool.relation(ExprKind::eq, integer, pool.integer(value->integer)), where);
  return value->integer;
}

double ShapeEnv::Impl::specialize_float(const Expr* real, std::source_location where) {
  const Expr* e = knowledge.simplify(real);
  if (e->kind() == ExprKind::float_number) return e->float_value();
  if (e->has_unbacked())
    if (const std::optional<Number> answer = answered(e, where)) return answer->as_double();
  const std::optional<Number> value = hint_of(e);
  if (e->has_unbacked() || !value) throw_data_dependent(e, where);
  const Expr* condition = pool.relation(ExprKind::eq, real, pool.float_number(value->as_double()));
  if (!knowledge.decide(condition)) record(condition, where);
  return value->as_double();
}

bool guard_size_oblivious(SymBool condition, std::source_location where) {
  if (!condition.is_symbolic()) return condition.plain();
  ShapeEnv::Impl& env = condition.expr()->env()->impl();
  return env.guard(env.expr(condition), where, true);
}

bool statically_known_true(SymBool condition) {
  bool value = false;
  return condition.is_known(value) && value;
}

bool statically_known_false(SymBool condition) {
  bool value = false;
  return condition.is_known(value) && !value;
}

bool check_is_size(SymInt value, std::source_location where) {
  if (!check(value >= 0, where)) return false;
  if (const auto env = env_of(value)) env->constrain_range_for_size(value);
  return true;
}

}  // namespace calque
