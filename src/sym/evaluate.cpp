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
      default: break;
    }
    const std::optional<Number> first = run(e->arg(0));
    if (!first) return std::nullopt;
    if (is_unary(e->kind())) return unary(e, *first);
    const std::optional<Number> second = run(e->arg(1));
    if (!second) return std::nullopt;
    return binary(e, *first, *second);
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

  static bool is_unary(ExprKind kind) {  // a power's exponent is a number of its own
    return kind == ExprKind::pow || kind == ExprKind::logical_not || kind == ExprKind::to_float ||
           kind == ExprKind::floor_to_int || kind == ExprKind::ceil_to_int || kind == ExprKind::trunc_to_int ||
           kind == ExprKind::round_to_int || kind == ExprKind::floor || kind == ExprKind::trunc_to_float ||
           kind == ExprKind::absolute || kind == ExprKind::opaque_unary;
  }
  static Number unary(const Expr* e, Number x) {
    switch (e->kind()) {
      case ExprKind::pow:
        if (x.is_float) return float_number(std::pow(x.real, static_cast<double>(e->exponent())));
        return integer_number(power(x.integer, e->exponent(), e));
      case ExprKind::logical_not: return integer_number(x.integer == 0);
      case ExprKind::to_float: return float_number(x.as_double());
      case ExprKind::floor_to_int: return x.is_float ? rounded(std::floor(x.real), e) : x;
      case ExprKind::ceil_to_int: return x.is_float ? rounded(std::ceil(x.real), e) : x;
      case ExprKind::trunc_to_int: return x.is_float ? rounded(std::trunc(x.real), e) : x;
      case ExprKind::round_to_int: return x.is_float ? rounded(std::nearbyint(x.real), e) : x;
      case ExprKind::floor: return x.is_float ? rounded(std::floor(x.real), e) : x;
      case ExprKind::trunc_to_float: return float_number(std::trunc(x.as_double()));
      case ExprKind::absolute:
        if (x.is_float) return float_number(std::fabs(x.real));
        return x.integer < 0 ? integer_number(checked_mul(x.integer, -1)) : x;
      case ExprKind::opaque_unary: return float_number(opaque_value(e->opaque_function(), x.as_double()));
      default: throw InternalError("an expression of unknown kind");
    }
  }

  static Number binary(const Expr* e, Number x, Number y) {
    if (is_relation(e->kind())) return integer_number(compare(e->kind(), x, y));
    const bool real = x.is_float || y.is_float;
    switch (e->kind()) {
      case ExprKind::floor_div:
      case ExprKind::clean_div:
        not_zero(y, e);
        if (real) return float_number(float_floor_quotient(x.as_double(), y.as_double()));
        return integer_number(floor_quotient(x.integer, y.integer));
      case ExprKind::mod:
      case ExprKind::python_mod:
        not_zero(y, e);
        if (real) return float_number(float_floor_remainder(x.as_double(), y.as_double()));
        return integer_number(floor_remainder(x.integer, y.integer));
      case ExprKind::bitwise_and: return integer_number(x.integer & y.integer);
      case ExprKind::bitwise_or: return integer_number(x.integer | y.integer);
      case ExprKind::bitwise_xor: return integer_number(x.integer ^ y.integer);
      case ExprKind::round_decimal: return float_number(round_to_digits(x.as_double(), y.integer));
      case ExprKind::pow_by_natural: return integer_number(power(x.integer, y.integer, e));
      case ExprKind::int_true_div:
        not_zero(y, e);
        if (real) return float_number(x.as_double() / y.as_double());
        // long double holds 64-bit integers, so that only the quotient is rounded
        return float_number(static_cast<double>(static_cast<long double>(x.integer) / static_cast<long double>(y.integer)));
      case ExprKind::float_true_div: not_zero(y, e); return float_number(x.as_double() / y.as_double());
      case ExprKind::float_pow: return float_number(std::pow(x.as_double(), y.as_double()));
      default: throw InternalError("an expression of unknown kind");
    }
  }

  const SymbolValue& value_of_;
  std::unordered_map<const Expr*, std::optional<Number>> known_;
};

}  // namespace

std::optional<Number> evaluate_expr(const Expr* e, const SymbolValue& value_of) { return Evaluator(value_of).run(e); }

}  // namespace calque
