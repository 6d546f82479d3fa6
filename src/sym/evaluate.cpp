#include "sym/evaluate.h"

#include <cmath>
#include <unordered_map>
#include <vector>

#include "calque/base/error.h"
#include "sym/expr_pool.h"
#include "sym/range.h"

namespace calque {

namespace {

Number integer_number(int64_t v) { return v; }
Number float_number(double v) { return v; }

class Evaluator {
 public:
  explicit Evaluator(const SymbolValue& value_of) : value_of_(value_of) {}

  std::optional<Number> run(const Expr* e) {
    if (e->tree_size() < worth_remembering) return compute(e);
    if (const auto known = known_.find(e); known != known_.end()) return known->second;
    const std::optional<Number> out = compute(e);
    known_.emplace(e, out);
    return out;
  }

 private:
  static constexpr uint32_t worth_remembering = 16;

  static Number add(Number a, Number b) {
    if (a.is_float || b.is_float) return float_number(a.as_double() + b.as_double());
    return integer_number(checked_add(a.integer, b.integer));
  }
  static Number mul(Number a, Number b) {
    if (a.is_float || b.is_float) return float_number(a.as_double() * b.as_double());
    return integer_number(checked_mul(a.integer, b.integer));
  }
  static int64_t power(int64_t base, int64_t exponent, const Expr* e) {
    if (exponent < 0)
      throw UserError("evaluating " + e->str() + ": the exponent " + std::to_string(exponent) + " is negative");
    if (exponent == 0 || base == 1) return 1;
    if (base == 0) return 0;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    int64_t out = 1;
    for (int64_t i = 0; i < exponent; ++i) out = checked_mul(out, base);
    return out;
  }
  static bool compare(ExprKind kind, Number a, Number b) {
    const bool real = a.is_float || b.is_float;
    const bool less = real ? a.as_double() < b.as_double() : a.integer < b.integer;
    const bool equal = real ? a.as_double() == b.as_double() : a.integer == b.integer;
    switch (comparison_of(kind)) {
      case Comparison::equal: return equal;
      case Comparison::unequal: return !equal;
      case Comparison::less: return less;
      case Comparison::less_equal: return less || equal;
      case Comparison::greater: return real ? a.as_double() > b.as_double() : a.integer > b.integer;
      case Comparison::greater_equal: return real ? a.as_double() >= b.as_double() : a.integer >= b.integer;
    }
    throw InternalError("a comparison of no kind");
  }
  static void not_zero(Number divisor, const Expr* e) {
    if (divisor.as_double() == 0) throw UserError("evaluating " + e->str() + ": division by zero");
  }
  static Number rounded(double v, const Expr* e) {
    if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
      throw UserError("evaluating " + e->str() + ": " + std::to_string(v) + " does not fit 64 bits");
    return integer_number(static_cast<int64_t>(v));
  }

  // By how many arguments must be known before anything can be said.
  std::optional<Number> compute(const Expr* e) {
    switch (e->kind()) {
      case ExprKind::integer: return integer_number(e->integer());
      case ExprKind::float_number: return float_number(e->float_value());
      case ExprKind::true_value: return integer_number(1);
      case ExprKind::false_value: return integer_number(0);
      case ExprKind::symbol: return value_of_(e->symbol_index());
      case ExprKind::dense_indicator: return dense_indicator(e);
      case ExprKind::where:
      case ExprKind::piecewise: return choice(e);
      case ExprKind::logical_and:
      case ExprKind::logical_or: return connective(e);
      case ExprKind::add:
      case ExprKind::mul:
      case ExprKind::max:
      case ExprKind::min: return fold(e);
      case ExprKind::pow:
      case ExprKind::to_float:
      case ExprKind::floor_to_int:
      case ExprKind::ceil_to_int:
      case ExprKind::trunc_to_int:
      case ExprKind::round_to_int:
      case ExprKind::floor:
      case ExprKind::trunc_to_float:
      case ExprKind::absolute:
      case ExprKind::opaque_unary:
      case ExprKind::logical_not: return of_one(e);  // a power's exponent is a number of its own
      case ExprKind::floor_div:
      case ExprKind::clean_div:
      case ExprKind::mod:
      case ExprKind::python_mod:
      case ExprKind::pow_by_natural:
      case ExprKind::int_true_div:
      case ExprKind::float_true_div:
      case ExprKind::float_pow:
      case ExprKind::round_decimal:
      case ExprKind::bitwise_and:
      case ExprKind::bitwise_or:
      case ExprKind::bitwise_xor:
      case ExprKind::eq:
      case ExprKind::ne:
      case ExprKind::lt:
      case ExprKind::le:
      case ExprKind::gt:
      case ExprKind::ge: return of_two(e);
    }
    throw InternalError("an expression of unknown kind");
  }

  std::optional<Number> of_one(const Expr* e) {
    const std::optional<Number> x = run(e->arg(0));
    return x ? std::optional(unary(e, *x)) : std::nullopt;
  }
  std::optional<Number> of_two(const Expr* e) {
    const std::optional<Number> x = run(e->arg(0));
    if (!x) return std::nullopt;
    const std::optional<Number> y = run(e->arg(1));
    return y ? std::optional(binary(e, *x, *y)) : std::nullopt;
  }

  std::optional<Number> dense_indicator(const Expr* e) {
    std::vector<int64_t> numbers;
    for (const Expr* a : e->args()) {
      const std::optional<Number> v = run(a);
      if (!v) return std::nullopt;
      numbers.push_back(v->integer);
    }
    return integer_number(is_dense(numbers));
  }

  std::optional<Number> choice(const Expr* e) {
    const std::optional<Number> condition = run(e->arg(0));
    if (!condition) return std::nullopt;
    return run(e->arg(condition->integer != 0 ? 1 : 2));
  }

  // One absorbing argument decides, whatever is not known of the others.
  std::optional<Number> connective(const Expr* e) {
    const bool absorbing = e->kind() == ExprKind::logical_or;
    bool all = true;
    for (const Expr* a : e->args()) {
      const std::optional<Number> v = run(a);
      if (v && (v->integer != 0) == absorbing) return integer_number(absorbing);
      all &= v.has_value();
    }
    if (!all) return std::nullopt;
    return integer_number(!absorbing);
  }

  std::optional<Number> fold(const Expr* e) {
    const std::optional<Number> first = run(e->arg(0));
    if (!first) return std::nullopt;
    Number x = *first;
    for (const Expr* a : e->args().subspan(1)) {
      const std::optional<Number> y = run(a);
      if (!y) return std::nullopt;
      if (e->kind() == ExprKind::add)
        x = add(x, *y);
      else if (e->kind() == ExprKind::mul)
        x = mul(x, *y);
      else if (compare(e->kind() == ExprKind::max ? ExprKind::lt : ExprKind::gt, x, *y))
        x = *y;
    }
    return x;
  }

  static Number unary(const Expr* e, Number x) {
    const ExprKind kind = e->kind();
    if (kind == ExprKind::pow) {
      if (x.is_float) return float_number(std::pow(x.real, static_cast<double>(e->exponent())));
      return integer_number(power(x.integer, e->exponent(), e));
    }
    if (kind == ExprKind::logical_not) return integer_number(x.integer == 0);
    if (kind == ExprKind::to_float) return float_number(x.as_double());
    if (is_rounding(kind)) return x.is_float ? rounded(round_by(kind, x.real), e) : x;
    if (kind == ExprKind::trunc_to_float) return float_number(std::trunc(x.as_double()));
    if (kind == ExprKind::absolute) {
      if (x.is_float) return float_number(std::fabs(x.real));
      return x.integer < 0 ? integer_number(checked_mul(x.integer, -1)) : x;
    }
    if (kind == ExprKind::opaque_unary) return float_number(opaque_value(e->opaque_function(), x.as_double()));
    throw InternalError("an expression of unknown kind");
  }

  static Number binary(const Expr* e, Number x, Number y) {
    if (is_relation(e->kind())) return integer_number(compare(e->kind(), x, y));
    const bool real = x.is_float || y.is_float;
    const ExprKind kind = e->kind();
    if (kind == ExprKind::floor_div || kind == ExprKind::clean_div) {
      not_zero(y, e);
      if (real) return float_number(float_floor_quotient(x.as_double(), y.as_double()));
      return integer_number(floor_quotient(x.integer, y.integer));
    }
    if (kind == ExprKind::mod || kind == ExprKind::python_mod) {
      not_zero(y, e);
      if (real) return float_number(float_floor_remainder(x.as_double(), y.as_double()));
      return integer_number(floor_remainder(x.integer, y.integer));
    }
    if (kind == ExprKind::bitwise_and) return integer_number(x.integer & y.integer);
    if (kind == ExprKind::bitwise_or) return integer_number(x.integer | y.integer);
    if (kind == ExprKind::bitwise_xor) return integer_number(x.integer ^ y.integer);
    if (kind == ExprKind::round_decimal) return float_number(round_to_digits(x.as_double(), y.integer));
    if (kind == ExprKind::pow_by_natural) return integer_number(power(x.integer, y.integer, e));
    if (kind == ExprKind::int_true_div) {
      not_zero(y, e);
      if (real) return float_number(x.as_double() / y.as_double());
      // long double holds 64-bit integers, so that only the quotient is rounded
      return float_number(static_cast<double>(static_cast<long double>(x.integer) / static_cast<long double>(y.integer)));
    }
    if (kind == ExprKind::float_true_div) {
      not_zero(y, e);
      return float_number(x.as_double() / y.as_double());
    }
    if (kind == ExprKind::float_pow) return float_number(std::pow(x.as_double(), y.as_double()));
    throw InternalError("an expression of unknown kind");
  }

  const SymbolValue& value_of_;
  std::unordered_map<const Expr*, std::optional<Number>> known_;
};

}  // namespace

std::optional<Number> evaluate_expr(const Expr* e, const SymbolValue& value_of) { return Evaluator(value_of).run(e); }

}  // namespace calque
