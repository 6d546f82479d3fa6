#include "calque/sym/sym_math.h"

#include <cmath>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"
#include "sym/observed.h"
#include "sym/range.h"

namespace calque {

namespace {

bool is_plain(SymInt v) { return !v.is_symbolic(); }

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
      for (int64_t i = 0; i < n; ++i) out *= base;  // ends within 64 steps: it overflows
      return out;
    }
    ShapeEnv::Impl& env = base.expr()->env()->impl();
    return observed("operator.pow", SymInt(env.pool.pow(env.expr(base), n)), base, exponent);
  }
  ShapeEnv::Impl& env = common_env({base.expr(), exponent.expr()});
  return observed("operator.pow", SymInt(env.pool.pow_by_natural(env.expr(base), env.expr(exponent))), base, exponent);
}

SymInt sym_where(SymBool condition, SymInt if_true, SymInt if_false) {
  if (!condition.is_symbolic()) return condition.plain() ? if_true : if_false;
  ShapeEnv::Impl& env = common_env({condition.expr(), if_true.expr(), if_false.expr()});
  return SymInt(env.pool.where(env.expr(condition), env.expr(if_true), env.expr(if_false)));
}

SymFloat sym_float(SymInt value) {
  if (is_plain(value)) return static_cast<double>(value.as_int());
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return observed("torch.sym_float", float_function(ExprKind::to_float, env, {env.expr(value)}), value);
}

SymFloat sym_true_div(SymInt a, SymInt b) {
  if (is_plain(b) && b.as_int() == 0) throw UserError("true_div: division of " + a.str() + " by zero");
  if (is_plain(a) && is_plain(b))
    return static_cast<double>(static_cast<long double>(a.as_int()) / static_cast<long double>(b.as_int()));
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.truediv", float_function(ExprKind::int_true_div, env, {env.expr(a), env.expr(b)}), a, b);
}

SymFloat sym_float_div(SymFloat a, SymFloat b) {
  if (!b.is_symbolic() && b.as_float() == 0) throw UserError("true_div: division of " + a.str() + " by zero");
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() / b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.truediv", float_function(ExprKind::float_true_div, env, {env.expr(a), env.expr(b)}), a, b);
}

SymFloat sym_add(SymFloat a, SymFloat b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() + b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.add", SymFloat(env.pool.add(env.expr(a), env.expr(b))), a, b);
}

SymFloat sym_mul(SymFloat a, SymFloat b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.as_float() * b.as_float();
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.mul", SymFloat(env.pool.mul(env.expr(a), env.expr(b))), a, b);
}

SymFloat sym_float_pow(SymFloat base, SymFloat exponent) {
  if (!base.is_symbolic() && !exponent.is_symbolic()) return std::pow(base.as_float(), exponent.as_float());
  ShapeEnv::Impl& env = common_env({base.expr(), exponent.expr()});
  return observed("operator.pow", float_function(ExprKind::float_pow, env, {env.expr(base), env.expr(exponent)}), base,
                  exponent);
}

SymFloat sym_repeated_sum(SymFloat value, int64_t times) {
  if (!value.is_symbolic()) return value.as_float() * static_cast<double>(times);
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return SymFloat(env.pool.scale(times, env.expr(value)));
}

SymFloat sym_repeated_product(SymFloat value, int64_t times) {
  if (!value.is_symbolic()) return std::pow(value.as_float(), static_cast<double>(times));
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return SymFloat(env.pool.pow(env.expr(value), times));
}

SymInt floor_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::floor(value.as_float()), "floor");
  return observed("math.floor", rounded(ExprKind::floor_to_int, value), value);
}

SymInt ceil_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::ceil(value.as_float()), "ceil");
  return observed("math.ceil", rounded(ExprKind::ceil_to_int, value), value);
}

SymInt trunc_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::trunc(value.as_float()), "trunc");
  return observed("math.trunc", rounded(ExprKind::trunc_to_int, value), value);
}

SymInt round_to_int(SymFloat value) {
  if (!value.is_symbolic()) return to_integer(std::nearbyint(value.as_float()), "round");
  return observed("builtins.round", rounded(ExprKind::round_to_int, value), value);
}

SymFloat sym_round(SymFloat value, int64_t digits) {
  if (!value.is_symbolic()) return round_to_digits(value.as_float(), digits);
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return float_function(ExprKind::round_decimal, env, {env.expr(value), env.pool.integer(digits)});
}

SymFloat sym_trunc(SymFloat value) {
  if (!value.is_symbolic()) return std::trunc(value.as_float());
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return float_function(ExprKind::trunc_to_float, env, {env.expr(value)});
}

SymBool sym_is_integer(SymFloat value) {
  if (!value.is_symbolic()) return std::floor(value.as_float()) == value.as_float();
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  const Expr* e = env.expr(value);
  const Expr* whole = env.pool.float_function(ExprKind::floor, {&e, 1});
  return SymBool(env.pool.relation(ExprKind::eq, env.pool.float_function(ExprKind::to_float, {&whole, 1}), e));
}

SymInt sym_abs(SymInt value) {
  if (is_plain(value)) return value.as_int() < 0 ? -value : value;
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return observed("operator.abs", SymInt(env.pool.absolute(env.expr(value))), value);
}

SymFloat sym_float_abs(SymFloat value) {
  if (!value.is_symbolic()) return std::fabs(value.as_float());
  ShapeEnv::Impl& env = value.expr()->env()->impl();
  return observed("operator.abs", SymFloat(env.pool.absolute(env.expr(value))), value);
}

namespace {

SymInt power_of_two(const char* what, SymInt shift) {
  if (is_plain(shift) && shift.as_int() < 0)
    throw UserError(std::string(what) + ": the shift " + shift.str() + " is negative");
  return sym_pow(2, shift);
}

SymInt bitwise(ExprKind kind, SymInt a, SymInt b) {
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return SymInt(env.pool.bitwise(kind, env.expr(a), env.expr(b)));
}

SymBool compare(ExprKind kind, SymFloat a, SymFloat b) {
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return SymBool(env.pool.relation(kind, env.expr(a), env.expr(b)));
}

bool both_plain(SymFloat a, SymFloat b) { return !a.is_symbolic() && !b.is_symbolic(); }

SymFloat opaque(OpaqueFunction function, SymFloat x) {
  if (!x.is_symbolic()) return opaque_value(function, x.as_float());
  ShapeEnv::Impl& env = x.expr()->env()->impl();
  return SymFloat(env.pool.opaque(function, env.expr(x)));
}

void refuse_zero(const char* what, SymFloat a, SymFloat b) {
  if (!b.is_symbolic() && b.as_float() == 0) throw UserError(std::string(what) + ": division of " + a.str() + " by zero");
}

}  // namespace

SymInt sym_lshift(SymInt value, SymInt shift) { return value * power_of_two("lshift", shift); }
SymInt sym_rshift(SymInt value, SymInt shift) { return floor_div(value, power_of_two("rshift", shift)); }

SymInt sym_bitwise_and(SymInt a, SymInt b) {
  if (is_plain(a) && is_plain(b)) return a.as_int() & b.as_int();
  return observed("operator.and_", bitwise(ExprKind::bitwise_and, a, b), a, b);
}
SymInt sym_bitwise_or(SymInt a, SymInt b) {
  if (is_plain(a) && is_plain(b)) return a.as_int() | b.as_int();
  return observed("operator.or_", bitwise(ExprKind::bitwise_or, a, b), a, b);
}
SymInt sym_bitwise_xor(SymInt a, SymInt b) {
  if (is_plain(a) && is_plain(b)) return a.as_int() ^ b.as_int();
  return observed("operator.xor", bitwise(ExprKind::bitwise_xor, a, b), a, b);
}

SymInt sym_sum(SymIntList values) {
  ShapeEnv* env = nullptr;
  for (const SymInt v : values)
    if (v.expr() != nullptr && v.expr()->env() != nullptr) {
      if (env != nullptr) (void)common_env({v.expr(), env->impl().pool.integer(0)});
      env = v.expr()->env();
    }
  if (env == nullptr) {
    SymInt out = 0;
    for (const SymInt v : values) out += v;
    return out;
  }
  std::vector<const Expr*> terms;  // collected once, not once for each summand
  for (const SymInt v : values) terms.push_back(env->impl().expr(v));
  return SymInt(env->impl().pool.sum_of(terms));
}

SymInt sym_ite(SymBool condition, SymInt if_true, SymInt if_false) {
  if (!condition.is_symbolic()) return condition.plain() ? if_true : if_false;
  ShapeEnv::Impl& env = common_env({condition.expr(), if_true.expr(), if_false.expr()});
  return observed("torch.sym_ite", SymInt(env.pool.piecewise(env.expr(condition), env.expr(if_true), env.expr(if_false))),
                  condition, if_true, if_false);
}

SymFloat sym_float_ite(SymBool condition, SymFloat if_true, SymFloat if_false) {
  if (!condition.is_symbolic()) return condition.plain() ? if_true : if_false;
  ShapeEnv::Impl& env = common_env({condition.expr(), if_true.expr(), if_false.expr()});
  return observed("torch.sym_ite", SymFloat(env.pool.piecewise(env.expr(condition), env.expr(if_true), env.expr(if_false))),
                  condition, if_true, if_false);
}

SymBool sym_bool_ite(SymBool condition, SymBool if_true, SymBool if_false) {
  if (!condition.is_symbolic()) return condition.plain() ? if_true : if_false;
  return sym_or(sym_and(condition, if_true), sym_and(!condition, if_false));
}

SymInt sym_int(SymBool value) { return sym_ite(value, SymInt(1), SymInt(0)); }
SymInt sym_int(SymFloat value) { return trunc_to_int(value); }

SymBool sym_equal(SymBool a, SymBool b) {
  if (!a.is_symbolic()) return a.plain() ? b : !b;
  if (!b.is_symbolic()) return b.plain() ? a : !a;
  return sym_or(sym_and(a, b), sym_and(!a, !b));
}

SymBool sym_eq(SymIntList a, SymIntList b) {
  if (a.size() != b.size()) return false;
  SymBool out = true;
  for (size_t i = 0; i < a.size(); ++i) out = sym_and(out, a[i] == b[i]);
  return out;
}

SymFloat sym_float_min(SymFloat a, SymFloat b) {
  if (both_plain(a, b)) return b.as_float() < a.as_float() ? b : a;
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("torch.sym_min", SymFloat(env.pool.extremum(ExprKind::min, {env.expr(a), env.expr(b)})), a, b);
}
SymFloat sym_float_max(SymFloat a, SymFloat b) {
  if (both_plain(a, b)) return b.as_float() > a.as_float() ? b : a;
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("torch.sym_max", SymFloat(env.pool.extremum(ExprKind::max, {env.expr(a), env.expr(b)})), a, b);
}
SymFloat sym_float_floor_div(SymFloat a, SymFloat b) {
  refuse_zero("floor_div", a, b);
  if (both_plain(a, b)) return float_floor_quotient(a.as_float(), b.as_float());
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.floordiv", SymFloat(env.pool.floor_div(env.expr(a), env.expr(b))), a, b);
}
SymFloat operator%(SymFloat a, SymFloat b) {
  refuse_zero("mod", a, b);
  if (both_plain(a, b)) return float_floor_remainder(a.as_float(), b.as_float());
  ShapeEnv::Impl& env = common_env({a.expr(), b.expr()});
  return observed("operator.mod", SymFloat(env.pool.mod(env.expr(a), env.expr(b))), a, b);
}

SymFloat operator+(SymFloat a, SymFloat b) { return sym_add(a, b); }
SymFloat operator-(SymFloat a, SymFloat b) {
  const auto difference = [&] {
    const SymObserverScope quiet(nullptr);
    return sym_add(a, -b);
  };
  return observed("operator.sub", difference(), a, b);
}
SymFloat operator*(SymFloat a, SymFloat b) { return sym_mul(a, b); }
SymFloat operator/(SymFloat a, SymFloat b) { return sym_float_div(a, b); }
SymFloat operator-(SymFloat a) {
  if (!a.is_symbolic()) return -a.as_float();
  ShapeEnv::Impl& env = a.expr()->env()->impl();
  return observed("operator.neg", SymFloat(env.pool.scale(-1, env.expr(a))), a);
}

SymBool operator==(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() == b.as_float())
                          : observed("operator.eq", compare(ExprKind::eq, a, b), a, b);
}
SymBool operator!=(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() != b.as_float())
                          : observed("operator.ne", compare(ExprKind::ne, a, b), a, b);
}
SymBool operator<(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() < b.as_float())
                          : observed("operator.lt", compare(ExprKind::lt, a, b), a, b);
}
SymBool operator<=(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() <= b.as_float())
                          : observed("operator.le", compare(ExprKind::le, a, b), a, b);
}
SymBool operator>(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() > b.as_float())
                          : observed("operator.gt", compare(ExprKind::gt, a, b), a, b);
}
SymBool operator>=(SymFloat a, SymFloat b) {
  return both_plain(a, b) ? SymBool(a.as_float() >= b.as_float())
                          : observed("operator.ge", compare(ExprKind::ge, a, b), a, b);
}

SymFloat sym_sqrt(SymFloat x) { return opaque(OpaqueFunction::sqrt, x); }
SymFloat sym_cos(SymFloat x) { return opaque(OpaqueFunction::cos, x); }
SymFloat sym_cosh(SymFloat x) { return opaque(OpaqueFunction::cosh, x); }
SymFloat sym_sin(SymFloat x) { return opaque(OpaqueFunction::sin, x); }
SymFloat sym_sinh(SymFloat x) { return opaque(OpaqueFunction::sinh, x); }
SymFloat sym_tan(SymFloat x) { return opaque(OpaqueFunction::tan, x); }
SymFloat sym_tanh(SymFloat x) { return opaque(OpaqueFunction::tanh, x); }
SymFloat sym_asin(SymFloat x) { return opaque(OpaqueFunction::asin, x); }
SymFloat sym_acos(SymFloat x) { return opaque(OpaqueFunction::acos, x); }
SymFloat sym_atan(SymFloat x) { return opaque(OpaqueFunction::atan, x); }
SymFloat sym_exp(SymFloat x) { return opaque(OpaqueFunction::exp, x); }
SymFloat sym_log(SymFloat x) { return opaque(OpaqueFunction::log, x); }
SymFloat sym_asinh(SymFloat x) { return opaque(OpaqueFunction::asinh, x); }
SymFloat sym_log2(SymFloat x) { return opaque(OpaqueFunction::log2, x); }

SymBool is_non_overlapping_and_dense(SymIntList sizes, SymIntList strides) {
  if (sizes.size() != strides.size())
    throw UserError("is_non_overlapping_and_dense: " + std::to_string(sizes.size()) + " sizes but " +
                    std::to_string(strides.size()) + " strides");
  ShapeEnv* env = nullptr;
  std::vector<SymInt> all(sizes.begin(), sizes.end());
  all.insert(all.end(), strides.begin(), strides.end());
  for (const SymInt v : all)
    if (!is_plain(v)) env = v.expr()->env();
  if (env == nullptr) {
    std::vector<int64_t> numbers;
    for (const SymInt v : all) numbers.push_back(v.as_int());
    return numbers.empty() || is_dense(numbers);
  }
  ShapeEnv::Impl& impl = env->impl();
  std::vector<const Expr*> args;
  for (const SymInt v : all) args.push_back(impl.expr(v));
  return SymBool(impl.pool.relation(ExprKind::eq, impl.pool.dense_indicator(args), impl.pool.integer(1)));
}

}  // namespace calque
