#include "calque/sym/sym_int.h"

#include <bit>
#include <mutex>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/condition_text.h"
#include "sym/env_impl.h"
#include "sym/observed.h"
#include "sym/order.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr int64_t pointer_tag = INT64_MIN;

// Integers too negative for the word. Never freed: a SymInt owns nothing, so such a value has to outlive everything.
const int64_t* immortal_integer(int64_t value) {
  static std::mutex mutex;
  static auto* values = new std::unordered_set<int64_t>();
  const std::lock_guard lock(mutex);
  return &*values->insert(value).first;
}

[[noreturn]] void throw_overflow(const char* what, int64_t a, const char* sign, int64_t b) {
  throw UserError(std::string(what) + ": integer overflow in " + std::to_string(a) + " " + sign + " " + std::to_string(b) +
                  " (the result does not fit 64 bits; is a size or a stride too large?)");
}

bool integer_value(SymInt a, int64_t& value) {
  if (a.is_symbolic()) return false;
  value = a.is_word() ? a.word() : *std::bit_cast<const int64_t*>(a.word() ^ (pointer_tag | 1));
  return true;
}

bool integer_values(SymInt a, SymInt b, int64_t& x, int64_t& y) { return integer_value(a, x) && integer_value(b, y); }

ShapeEnv::Impl& env_of_both(SymInt a, SymInt b) {
  const Expr* x = a.expr();
  const Expr* y = b.expr();
  const bool plain_x = x == nullptr || x->env() == nullptr;
  if (!plain_x && (y == nullptr || y->env() == x->env())) return x->env()->impl();
  return calque::common_env({x, y});
}

const Expr* divisor(ShapeEnv::Impl& env, const char* what, SymInt a, SymInt b) {
  const Expr* e = env.expr(b);
  if (e->is_integer() && e->integer() == 0) throw UserError(std::string(what) + ": division of " + a.str() + " by zero");
  return e;
}

bool is_from_data(SymInt a) { return a.is_symbolic() && a.expr()->has_unbacked(); }

// What it stands for by now, unless that is fixed.
const Expr* as_data(ShapeEnv::Impl& env, SymInt a) {
  const Expr* now = env.expr(a);
  return is_from_data(a) && !now->has_unbacked() ? a.expr() : now;
}

SymBool compare(ExprKind kind, SymInt a, SymInt b) {
  ShapeEnv::Impl& env = env_of_both(a, b);
  const SymBool result(env.answer(kind, a, b, [&](const Expr* x, const Expr* y) { return env.pool.relation(kind, x, y); }));
  // What is known of data by now may not be so at run time: an assert that compares them is recorded all the same.
  if (!result.is_symbolic() && thread_context().sym_observer != nullptr && (is_from_data(a) || is_from_data(b)))
    return SymBool(env.pool.relation_as_written(kind, as_data(env, a), as_data(env, b)));
  return result;
}

}  // namespace

ShapeEnv::Impl& common_env(std::initializer_list<const Expr*> exprs) {
  ShapeEnv* env = nullptr;
  for (const Expr* e : exprs) {
    if (e == nullptr || e->env() == nullptr) continue;
    if (env != nullptr && env != e->env())
      throw UserError("symbolic values of two different shape environments were combined: " + e->str());
    env = e->env();
  }
  internal_assert(env != nullptr, "a symbolic operation without a symbolic operand");
  return env->impl();
}

const Expr* ShapeEnv::Impl::expr(SymInt value) {
  int64_t number;
  if (integer_value(value, number)) return pool.integer(number);
  return knowledge.replace(value.expr());
}

const Expr* ShapeEnv::Impl::expr(SymBool value) {
  return value.is_symbolic() ? knowledge.replace(value.expr()) : pool.boolean(value.plain());
}

const Expr* ShapeEnv::Impl::expr(SymFloat value) {
  return value.is_symbolic() ? knowledge.replace(value.expr()) : pool.float_number(value.as_float());
}

SymInt::SymInt(const Expr* expr) {
  internal_assert(expr != nullptr && !expr->is_boolean() && !expr->is_float(),
                  "a SymInt was made from no integer expression");
  if (expr->is_integer())
    *this = SymInt(expr->integer());
  else
    word_ = pointer_tag | std::bit_cast<int64_t>(expr);
}

const Expr* SymInt::expr() const {
  if (!is_symbolic()) return nullptr;
  return std::bit_cast<const Expr*>(word_ ^ pointer_tag);
}

SymInt SymInt::big_negative(int64_t value) {
  SymInt out;
  out.word_ = pointer_tag | 1 | std::bit_cast<int64_t>(immortal_integer(value));
  return out;
}

int64_t SymInt::as_int_slow() const {
  int64_t value;
  if (integer_value(*this, value)) return value;
  const Expr* known = expr()->env()->impl().knowledge.replace(expr());
  if (known->is_integer()) return known->integer();
  if (known->has_unbacked())
    if (const auto answer = known->env()->impl().answered(known, std::source_location::current())) return answer->integer;
  if (known->has_unbacked())
    throw UserError(ErrorKind::data_dependent,
                    "a plain integer was needed, but the value " + known->str() +
                        " is data-dependent: it comes out of a tensor and is known only when the program runs");
  throw UserError(ErrorKind::data_dependent,
                  "a plain integer was needed, but the value is symbolic: " + known->str() +
                      " (a kernel or an int argument was reached with symbolic sizes; guard_int() would specialise it)");
}

int64_t SymInt::guard_int_slow(std::source_location where) const {
  int64_t value;
  if (integer_value(*this, value)) return value;
  ShapeEnv::Impl& env = expr()->env()->impl();
  return env.specialize(env.expr(*this), where);
}

std::string SymInt::str() const {
  int64_t value;
  if (integer_value(*this, value)) return std::to_string(value);
  return expr()->env()->impl().expr(*this)->str();
}

SymBool::SymBool(const Expr* expr) {
  internal_assert(expr != nullptr && expr->is_boolean(), "a SymBool was made from no boolean expression");
  if (expr->kind() == ExprKind::true_value)
    word_ = 1;
  else if (expr->kind() != ExprKind::false_value)
    word_ = std::bit_cast<uintptr_t>(expr);
}

const Expr* SymBool::expr() const { return is_symbolic() ? std::bit_cast<const Expr*>(word_) : nullptr; }

bool SymBool::is_known(bool& value) const {
  if (!is_symbolic()) {
    value = plain();
    return true;
  }
  const std::optional<bool> known = expr()->env()->impl().knowledge.decide(expr());
  if (known) value = *known;
  return known.has_value();
}

std::string condition_text(const SymBool& condition) {
  if (!condition.is_symbolic()) return condition.plain() ? "True" : "False";
  return condition.expr()->env()->impl().expr(condition)->str();
}

std::string SymBool::str() const {
  if (!is_symbolic()) return plain() ? "True" : "False";
  // A condition that holds by now is still the condition that was asked.
  const Expr* now = expr()->env()->impl().expr(*this);
  const bool decided = now->kind() == ExprKind::true_value || now->kind() == ExprKind::false_value;
  return (decided ? expr() : now)->str();
}

SymFloat::SymFloat(const Expr* expr) {
  internal_assert(expr != nullptr && (expr->is_float() || expr->is_integer()),
                  "a SymFloat was made from no float expression");
  if (expr->is_integer())  // what is left of x - x
    value_ = static_cast<double>(expr->integer());
  else if (expr->kind() == ExprKind::float_number)
    value_ = expr->float_value();
  else
    expr_ = expr;
}

double SymFloat::as_float() const {
  if (!is_symbolic()) return value_;
  if (expr_->has_unbacked())
    if (const auto answer = expr_->env()->impl().answered(expr_, std::source_location::current()))
      return answer->as_double();
  throw UserError(ErrorKind::data_dependent, "a plain float was needed, but the value is symbolic" +
                                                 std::string(expr_->has_unbacked() ? " and data-dependent: " : ": ") +
                                                 str());
}

double SymFloat::guard_float(std::source_location where) const {
  if (!is_symbolic()) return value_;
  ShapeEnv::Impl& env = expr_->env()->impl();
  return env.specialize_float(env.expr(*this), where);
}

std::string SymFloat::str() const {
  if (!is_symbolic()) return float_text(value_, 17, true);
  return expr_->env()->impl().expr(*this)->str();
}

namespace sym_detail {

SymInt add(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (integer_values(a, b, x, y)) {
    if (__builtin_add_overflow(x, y, &r)) throw_overflow("add", x, "+", y);
    return r;
  }
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("operator.add", SymInt(env.pool.add(env.expr(a), env.expr(b))), a, b);
}

SymInt sub(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (integer_values(a, b, x, y)) {
    if (__builtin_sub_overflow(x, y, &r)) throw_overflow("sub", x, "-", y);
    return r;
  }
  ShapeEnv::Impl& env = env_of_both(a, b);
  const SymInt out(env.pool.sub(env.expr(a), env.expr(b)));
  // -b is written as 0 - b.
  return identical(a, 0) ? observed("operator.neg", out, b) : observed("operator.sub", out, a, b);
}

SymInt mul(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (integer_values(a, b, x, y)) {
    if (__builtin_mul_overflow(x, y, &r)) throw_overflow("mul", x, "*", y);
    return r;
  }
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("operator.mul",
                  SymInt(env.answer(ExprKind::mul, a, b, [&](const Expr* e, const Expr* f) { return env.pool.mul(e, f); })),
                  a, b);
}

SymInt floor_div(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) {
    if (y == 0) throw UserError("floor_div: division of " + std::to_string(x) + " by zero");
    if (x == INT64_MIN && y == -1) throw_overflow("floor_div", x, "//", y);
    return floor_quotient(x, y);
  }
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("operator.floordiv", SymInt(env.pool.floor_div(env.expr(a), divisor(env, "floor_div", a, b))), a, b);
}

SymInt mod(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) {
    if (y == 0) throw UserError("mod: division of " + std::to_string(x) + " by zero");
    return floor_remainder(x, y);
  }
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("operator.mod", SymInt(env.pool.mod(env.expr(a), divisor(env, "mod", a, b))), a, b);
}

SymInt min(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x < y ? a : b;
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("torch.sym_min",
                  SymInt(env.answer(ExprKind::min, a, b,
                                    [&](const Expr* e, const Expr* f) {
                                      return env.pool.extremum(ExprKind::min, {e, f});
                                    })),
                  a, b);
}

SymInt max(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x < y ? b : a;
  ShapeEnv::Impl& env = env_of_both(a, b);
  return observed("torch.sym_max",
                  SymInt(env.answer(ExprKind::max, a, b,
                                    [&](const Expr* e, const Expr* f) {
                                      return env.pool.extremum(ExprKind::max, {e, f});
                                    })),
                  a, b);
}

// A plain number on the left leaves the question to the other side, as in Python: 24 == u0 is u0 == 24, 2 < u0 is u0 > 2.
SymBool eq(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x == y;
  if (!a.is_symbolic()) return eq(b, a);
  if (identical(a, b)) return true;
  return observed("operator.eq", compare(ExprKind::eq, a, b), a, b);
}

SymBool lt(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x < y;
  if (!a.is_symbolic()) return gt(b, a);
  return observed("operator.lt", compare(ExprKind::lt, a, b), a, b);
}

SymBool le(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x <= y;
  if (!a.is_symbolic()) return ge(b, a);
  return observed("operator.le", compare(ExprKind::le, a, b), a, b);
}

SymBool gt(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x > y;
  if (!a.is_symbolic()) return lt(b, a);
  return observed("operator.gt", compare(ExprKind::gt, a, b), a, b);
}

SymBool ge(SymInt a, SymInt b) {
  int64_t x, y;
  if (integer_values(a, b, x, y)) return x >= y;
  if (!a.is_symbolic()) return le(b, a);
  return observed("operator.ge", compare(ExprKind::ge, a, b), a, b);
}

SymBool logical_and(SymBool a, SymBool b) {
  ShapeEnv::Impl& env = calque::common_env({a.expr(), b.expr()});
  return observed("operator.and_", SymBool(env.pool.connective(ExprKind::logical_and, {env.expr(a), env.expr(b)})), a, b);
}

SymBool logical_or(SymBool a, SymBool b) {
  ShapeEnv::Impl& env = calque::common_env({a.expr(), b.expr()});
  return observed("operator.or_", SymBool(env.pool.connective(ExprKind::logical_or, {env.expr(a), env.expr(b)})), a, b);
}

SymBool logical_not(SymBool a) {
  ShapeEnv::Impl& env = a.expr()->env()->impl();
  return observed("torch.sym_not", SymBool(env.pool.logical_not(env.expr(a))), a);
}

bool guard(SymBool condition, std::source_location where) {
  ShapeEnv::Impl& env = condition.expr()->env()->impl();
  return env.guard(env.expr(condition), where);
}

bool guard_or(SymBool condition, bool otherwise, std::source_location where) {
  ShapeEnv::Impl& env = condition.expr()->env()->impl();
  return env.guard_or(env.expr(condition), otherwise, where);
}

bool expect_true(SymBool condition, std::source_location where) {
  ShapeEnv::Impl& env = condition.expr()->env()->impl();
  return env.expect_true(env.expr(condition), where);
}

}  // namespace sym_detail

SymIntList as_sym(IntList values) {
  for (const int64_t v : values)
    if (!SymInt(v).is_word())
      throw UserError("the value " + std::to_string(v) + " is too small for a size, a stride or an offset");
  return {reinterpret_cast<const SymInt*>(values.data()), values.size()};
}

}  // namespace calque
