#include "calque/sym/sym_math.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"

namespace calque {

namespace {

bool is_plain(SymInt v) { return v.expr() == nullptr || v.expr()->is_integer(); }

int64_t to_integer(double v, const char* what) {
  if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
    throw UserError(std::string(what) + ": " + std::to_string(v) + " does not fit a 64-bit integer");
  return static_cast<int64_t>(v);
}

SymFloat float_function(ExprKind kind, ShapeEnv::Impl& env, std::initializer_list<const Expr*> args) {
  return SymFloat(env.pool.float_function(kind, std::span(args.begin(), args.size())));
}

SymInt rounded(ExprKind kind, SymFloat value) {
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  const Expr* e = env.expr(value);
  return SymInt(env.pool.float_function(kind, {&e, 1}));
}

}  // namespace

SymInt sym_pow(SymInt base, SymInt exponent) {
  if (is_plain(exponent)) {
    const int64_t n = exponent.as_int();
    if (n < 0) throw UserError("pow: the exponent " + std::to_string(n) + " of an integer is negative");
    if (is_plain(base)) {
      const int64_t b = base.as_int();
      if (n == 0 || b == 1) return 1;
      if (b == 0) return 0;
      if (b == -1) return n % 2 == 0 ? 1 : -1;
      SymInt out = 1;
      for (int64_t i = 0; i < n; ++i)
        out *= base;  // ends within 64 steps: it overflows
      return out;
    }
    ShapeEnv::Impl& env = base.expr()->env()->impl();
    return SymInt(env.pool.pow(env.expr(base), n));
  }
  ShapeEnv::Impl& env = common_env({base.expr(), exponent.expr()});
  return SymInt(env.pool.pow_by_natural(env.expr(base), env.expr(exponent)));
}

SymInt sym_where(SymBool condition, SymInt if_true, SymInt if_false) {
  if (!condition.is_symbolic()) return condition.plain() ? if_true : if_false;
  ShapeEnv::Impl& env = common_env({condition.expr(), if_true.expr(), if_false.expr()});
  return SymInt(env.pool.where(env.expr(condition), env.expr(if_true), env.expr(if_false)));
}

SymFloat sym_float(SymInt value) {
  if (is_plain(value)) return static_cast<double>(value.as_int());
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return float_function(ExprKind::to_float, env, {env.expr(value)});
}

SymFloat sym_true_div(SymInt a, SymInt b) {
  if (is_plain(b) && b.as_int() == 0) throw UserError("true_div: division of " + a.str() + " by zero");
  if (is_plain(a) && is_plain(b))
    return static_cast<double>(static_cast<long double>(a.as_int()) / static_cast<long double>(b.as_int()));
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return float_function(ExprKind::int_true_div, env, {env.expr(a), env.expr(b)});
}

SymFloat sym_float_div(SymFloat a, SymFloat b) {
  if (!b.is_symbolic() && b.as_float() == 0) throw UserError("true_div: division of " + a.str() + " by zero");
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() / b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return float_function(ExprKind::float_true_div, env, {env.expr(a), env.expr(b)});
}

SymFloat sym_add(SymFloat a, SymFloat b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() + b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return SymFloat(env.pool.add(env.expr(a), env.expr(b)));
}

SymFloat sym_mul(SymFloat a, SymFloat b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() * b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return SymFloat(env.pool.mul(env.expr(a), env.expr(b)));
}

SymFloat sym_float_pow(SymFloat base, SymFloat exponent) {
  if (!base.is_symbolic() && !exponent.is_symbolic()) return std::pow(base.as_float(), exponent.as_float());
  ShapeEnv::Impl& env = common_env({base.expr(), exponent.expr()});
  return float_function(ExprKind::float_pow, env, {env.expr(base), env.expr(exponent)});
}

SymInt floor_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::floor(value.as_float()), "floor");
  return rounded(ExprKind::floor_to_int, value);
}

SymInt ceil_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::ceil(value.as_float()), "ceil");
  return rounded(ExprKind::ceil_to_int, value);
}

SymInt trunc_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::trunc(value.as_float()), "trunc");
  return rounded(ExprKind::trunc_to_int, value);
}

}  // namespace calque
