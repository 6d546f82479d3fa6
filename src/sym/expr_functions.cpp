// Max and Min, choice, floats, comparisons and their connectives.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "calque/base/error.h"
#include "sym/expr_pool.h"
#include "sym/knowledge.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr size_t most_pairwise = 8;  // arguments of a Max or Min that are compared with each other

bool number_of(const Expr* e, double& value) {
  if (e->is_integer()) {
    value = static_cast<double>(e->integer());
    return true;
  }
  if (e->kind() != ExprKind::float_number) return false;
  value = e->float_value();
  return true;
}

template <class T>
bool compare(ExprKind kind, T a, T b) {
  switch (comparison_of(kind)) {
    case Comparison::equal: return a == b;
    case Comparison::unequal: return a != b;
    case Comparison::less: return a < b;
    case Comparison::less_equal: return a <= b;
    case Comparison::greater: return a > b;
    case Comparison::greater_equal: return a >= b;
  }
  throw InternalError("a comparison of no kind");
}

ExprKind negated(ExprKind relation) {
  switch (comparison_of(relation)) {
    case Comparison::equal: return ExprKind::ne;
    case Comparison::unequal: return ExprKind::eq;
    case Comparison::less: return ExprKind::ge;
    case Comparison::less_equal: return ExprKind::gt;
    case Comparison::greater: return ExprKind::le;
    case Comparison::greater_equal: return ExprKind::lt;
  }
  throw InternalError("a comparison of no kind");
}

void sort_unique(std::vector<const Expr*>& args) {
  std::ranges::sort(args, {}, &Expr::id);
  const auto rest = std::ranges::unique(args);
  args.erase(rest.begin(), rest.end());
}

}  // namespace

Comparison comparison_of(ExprKind relation) {
  if (!is_relation(relation)) throw InternalError("an expression that is no relation was compared");
  return static_cast<Comparison>(static_cast<int>(relation) - static_cast<int>(ExprKind::eq));
}

int64_t checked_int(double value, const char* what) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
    throw UserError(std::string(what) + ": " + std::to_string(value) + " does not fit 64 bits");
  return static_cast<int64_t>(value);
}

bool is_rounding(ExprKind kind) {
  return kind == ExprKind::floor_to_int || kind == ExprKind::ceil_to_int || kind == ExprKind::trunc_to_int ||
         kind == ExprKind::round_to_int || kind == ExprKind::floor;
}

double round_by(ExprKind rounding, double value) {
  if (rounding == ExprKind::ceil_to_int) return std::ceil(value);
  if (rounding == ExprKind::trunc_to_int) return std::trunc(value);
  if (rounding == ExprKind::round_to_int) return std::nearbyint(value);
  return std::floor(value);
}

double round_to_digits(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 22) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double power = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / power) * power;
  }
  char text[400];  // correctly rounded from the exact binary value, ties to even, as Python does
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), value);
  return std::strtod(text, nullptr);
}

double opaque_value(OpaqueFunction function, double x) {
  const auto refuse = [&](const char* why) {
    throw UserError(std::string("sym_") + opaque_name(function) + ": the argument " + std::to_string(x) + " is " + why);
  };
  switch (function) {
    case OpaqueFunction::sqrt:
      if (x < 0) refuse("negative");
      return std::sqrt(x);
    case OpaqueFunction::cos: return std::cos(x);
    case OpaqueFunction::cosh: return std::cosh(x);
    case OpaqueFunction::sin: return std::sin(x);
    case OpaqueFunction::sinh: return std::sinh(x);
    case OpaqueFunction::tan: return std::tan(x);
    case OpaqueFunction::tanh: return std::tanh(x);
    case OpaqueFunction::asin:
      if (x < -1 || x > 1) refuse("outside [-1, 1]");
      return std::asin(x);
    case OpaqueFunction::acos:
      if (x < -1 || x > 1) refuse("outside [-1, 1]");
      return std::acos(x);
    case OpaqueFunction::atan: return std::atan(x);
    case OpaqueFunction::exp: return std::exp(x);
    case OpaqueFunction::log:
      if (x <= 0) refuse("not positive");
      return std::log(x);
    case OpaqueFunction::asinh: return std::asinh(x);
    case OpaqueFunction::log2:
      if (x <= 0) refuse("not positive");
      return std::log2(x);
  }
  throw InternalError("an unknown function");
}

// Some order of the dimensions is contiguous; dimensions of size one do not count.
bool is_dense(std::span<const int64_t> sizes_and_strides) {
  const size_t n = sizes_and_strides.size() / 2;
  const auto sizes = sizes_and_strides.first(n), strides = sizes_and_strides.subspan(n);
  if (n == 1) return strides[0] == 1 || sizes[0] < 2;
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return strides[i]; });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected = checked_mul(expected, sizes[i]);
  }
  return true;
}

const Expr* ExprPool::extremum(ExprKind kind, std::vector<const Expr*> given) {
  internal_assert(!given.empty(), "a Max or Min without arguments");
  const bool is_max = kind == ExprKind::max;
  if (std::ranges::any_of(given, [](const Expr* e) { return e->is_float(); })) return float_extremum(kind, given);
  const ExprKind other = is_max ? ExprKind::min : ExprKind::max;
  std::vector<const Expr*> args;
  const Expr* number = nullptr;
  const auto take = [&](const Expr* e) {
    if (!e->is_integer()) {
      args.push_back(e);
    } else if (number == nullptr || (e->integer() > number->integer()) == is_max) {
      number = e;
    }
  };
  for (const Expr* e : given) {
    if (e->kind() == kind)
      for (const Expr* a : e->args()) take(a);
    else
      take(e);
  }
  sort_unique(args);
  if (args.empty()) return number;

  const auto wins = [&](ValueRange difference) { return is_max ? difference.lower >= 0 : difference.upper <= 0; };
  if (number != nullptr) {
    const ValueRange n = range_of_integer(number->integer());
    const bool beaten = std::ranges::any_of(args, [&](const Expr* a) { return wins(range_add(range(a), range_negate(n))); });
    std::erase_if(args, [&](const Expr* a) { return !beaten && wins(range_add(n, range_negate(range(a)))); });
    if (beaten) number = nullptr;
  }
  // Max(a, Min(a, b)) is a.
  std::erase_if(args, [&](const Expr* e) {
    return e->kind() == other && std::ranges::any_of(e->args(), [&](const Expr* inner) {
             return inner == number || std::ranges::find(args, inner) != args.end();
           });
  });
  if (args.size() <= most_pairwise) {
    for (size_t i = 0; i < args.size(); ++i) {
      for (size_t j = 0; j < args.size();) {
        if (i != j && wins(difference_range(args[i], args[j]))) {
          args.erase(args.begin() + static_cast<std::ptrdiff_t>(j));
          if (j < i) --i;
        } else {
          ++j;
        }
      }
    }
  }
  if (args.empty()) return number;
  if (number != nullptr) args.push_back(number);
  if (args.size() == 1) return args[0];
  sort_unique(args);
  return make(kind, 0, args);
}

// Numbers are folded; nothing is known of the order of the rest.
const Expr* ExprPool::float_extremum(ExprKind kind, const std::vector<const Expr*>& given) {
  std::vector<const Expr*> args;
  const Expr* number = nullptr;
  const auto take = [&](const Expr* e) {
    double x, y;
    if (!number_of(e, x)) {
      args.push_back(e);
    } else if (number == nullptr || (number_of(number, y) && (kind == ExprKind::max ? x > y : x < y))) {
      number = e;
    }
  };
  for (const Expr* e : given) {
    if (e->kind() == kind)
      for (const Expr* a : e->args()) take(a);
    else
      take(e);
  }
  if (number != nullptr) args.push_back(number);
  sort_unique(args);
  if (args.size() == 1) return args[0];
  return make(kind, 0, args);
}

const Expr* ExprPool::where(const Expr* condition, const Expr* a, const Expr* b) {
  if (condition->kind() == ExprKind::true_value) return a;
  if (condition->kind() == ExprKind::false_value) return b;
  return make(ExprKind::where, {condition, a, b});
}

const Expr* ExprPool::pow_by_natural(const Expr* base, const Expr* exponent) {
  if (exponent->is_integer()) return pow(base, exponent->integer());
  return make(ExprKind::pow_by_natural, {base, exponent});
}

static const char* rounding_name(ExprKind rounding) {
  if (rounding == ExprKind::ceil_to_int) return "ceil";
  if (rounding == ExprKind::trunc_to_int) return "trunc";
  return rounding == ExprKind::round_to_int ? "round" : "floor";
}

const Expr* ExprPool::float_function(ExprKind kind, std::span<const Expr* const> args) {
  double x = 0, y = 0;
  const bool numbers = number_of(args[0], x) && (args.size() < 2 || number_of(args[1], y));
  if (kind == ExprKind::int_true_div || kind == ExprKind::float_true_div) {
    double divisor = 1;
    if (number_of(args[1], divisor) && divisor == 0) throw UserError("true_div: division of " + args[0]->str() + " by zero");
  }
  if (numbers) {
    if (kind == ExprKind::to_float) return float_number(x);
    if (kind == ExprKind::int_true_div || kind == ExprKind::float_true_div) return float_number(x / y);
    if (kind == ExprKind::float_pow) return float_number(std::pow(x, y));
    if (kind == ExprKind::round_decimal) return float_number(round_to_digits(x, checked_int(y, "round")));
    if (kind == ExprKind::trunc_to_float) return float_number(std::trunc(x));
    if (!is_rounding(kind)) throw InternalError("not a float function");
    return args[0]->is_integer() ? args[0] : integer(checked_int(round_by(kind, x), rounding_name(kind)));
  }
  if (kind == ExprKind::to_float && args[0]->is_float()) return args[0];
  if (is_rounding(kind) && !args[0]->is_float()) return args[0];
  return make(kind, 0, args);
}

const Expr* ExprPool::opaque(OpaqueFunction function, const Expr* a) {
  double x;
  if (number_of(a, x)) return float_number(opaque_value(function, x));
  return make(ExprKind::opaque_unary, static_cast<int64_t>(function), {&a, 1});
}

const Expr* ExprPool::absolute(const Expr* a) {
  if (a->kind() == ExprKind::float_number) return float_number(std::fabs(a->float_value()));
  if (a->kind() == ExprKind::absolute) return a;
  if (a->is_float()) return make(ExprKind::absolute, {a});
  const ValueRange r = range(a);
  if (r.lower >= 0) return a;
  if (r.upper <= 0) return scale(-1, a);
  if (a->kind() == ExprKind::add) return make(ExprKind::absolute, {a});
  const Term t = split_term(a);
  if (t.coefficient == INT64_MIN) return make(ExprKind::absolute, {a});
  return scale(t.coefficient < 0 ? -t.coefficient : t.coefficient, make(ExprKind::absolute, {t.rest}));
}

const Expr* ExprPool::bitwise(ExprKind kind, const Expr* a, const Expr* b) {
  if (!a->is_integer() || !b->is_integer()) return make(kind, {a, b});
  const int64_t x = a->integer(), y = b->integer();
  return integer(kind == ExprKind::bitwise_and ? x & y : kind == ExprKind::bitwise_or ? x | y : x ^ y);
}

const Expr* ExprPool::piecewise(const Expr* condition, const Expr* a, const Expr* b) {
  if (condition->kind() == ExprKind::true_value) return a;
  if (condition->kind() == ExprKind::false_value) return b;
  if (a == b) return a;
  return make(ExprKind::piecewise, {condition, a, b});
}

const Expr* ExprPool::dense_indicator(std::span<const Expr* const> args) {
  const size_t n = args.size() / 2;
  const auto sizes = args.first(n), strides = args.subspan(n);
  if (n == 0) return integer(1);
  if (n == 1) {
    if (strides[0]->is_integer() && strides[0]->integer() == 1) return integer(1);
    if (sizes[0]->is_integer() && sizes[0]->integer() < 2) return integer(1);
  }
  const auto plain = [](const Expr* e) { return e->is_integer(); };
  if (!std::ranges::all_of(strides, plain)) return make(ExprKind::dense_indicator, 0, args);
  // The size that goes with the largest stride does not matter.
  const size_t largest = static_cast<size_t>(std::ranges::max_element(strides, {}, &Expr::integer) - strides.begin());
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < n; ++i) {
    if (i != largest && !plain(sizes[i])) return make(ExprKind::dense_indicator, 0, args);
    numbers.push_back(plain(sizes[i]) ? sizes[i]->integer() : 42);
  }
  for (const Expr* stride : strides) numbers.push_back(stride->integer());
  return integer(is_dense(numbers) ? 1 : 0);
}

const Expr* ExprPool::relation(ExprKind kind, const Expr* a, const Expr* b) {
  if (a->is_integer() && b->is_integer()) return boolean(compare(kind, a->integer(), b->integer()));
  if (knowledge_ == nullptr) return relation_uncached(kind, a, b);
  Answer& last = answer_for(kind, a, b);
  if (last.a == a && last.b == b && last.kind == kind && last.epoch == knowledge_->epoch()) return last.result;
  const Expr* result = relation_uncached(kind, a, b);
  last = {a, b, result, knowledge_->epoch(), kind};
  return result;
}

const Expr* ExprPool::relation_uncached(ExprKind kind, const Expr* a, const Expr* b) {
  if (a == b) return boolean(compare(kind, 0, 0));
  if (a->is_integer() && b->is_integer()) return boolean(compare(kind, a->integer(), b->integer()));
  if (a->is_float() || b->is_float()) {
    double x, y;
    if (number_of(a, x) && number_of(b, y)) return boolean(compare(kind, x, y));
    return make(kind, {a, b});
  }
  // The difference knows more; the two ranges apart still help where it would leave 64 bits.
  const ValueRange r = range_intersect(difference_range(a, b), range_add(range(a), range_negate(range(b))));
  const bool at_zero = r.lower == 0 && r.upper == 0;
  if (r.lower > 0) return boolean(compare(kind, 1, 0));
  if (r.upper < 0) return boolean(compare(kind, -1, 0));
  if (at_zero) return boolean(compare(kind, 0, 0));
  if (r.lower == 0 && (kind == ExprKind::ge || kind == ExprKind::lt)) return boolean(kind == ExprKind::ge);
  if (r.upper == 0 && (kind == ExprKind::le || kind == ExprKind::gt)) return boolean(kind == ExprKind::le);
  return make(kind, {a, b});
}

const Expr* ExprPool::relation_as_written(ExprKind kind, const Expr* a, const Expr* b) {
  if (a == b) return boolean(compare(kind, 0, 0));
  if (a->is_integer() && b->is_integer()) return boolean(compare(kind, a->integer(), b->integer()));
  return make(kind, {a, b});
}

const Expr* ExprPool::connective(ExprKind kind, std::vector<const Expr*> given) {
  const bool is_and = kind == ExprKind::logical_and;
  const ExprKind absorbing = is_and ? ExprKind::false_value : ExprKind::true_value;
  const ExprKind neutral = is_and ? ExprKind::true_value : ExprKind::false_value;
  std::vector<const Expr*> args;
  for (const Expr* e : given) {
    if (e->kind() == absorbing) return e;
    if (e->kind() == kind)
      args.insert(args.end(), e->args().begin(), e->args().end());
    else if (e->kind() != neutral)
      args.push_back(e);
  }
  sort_unique(args);
  if (args.empty()) return boolean(is_and);
  if (args.size() == 1) return args[0];
  for (const Expr* e : args)
    if (std::ranges::find(args, logical_not(e)) != args.end()) return boolean(!is_and);
  return make(kind, 0, args);
}

const Expr* ExprPool::logical_not(const Expr* e) {
  if (e->kind() == ExprKind::true_value) return boolean(false);
  if (e->kind() == ExprKind::false_value) return boolean(true);
  if (e->kind() == ExprKind::logical_not) return e->arg(0);
  // The other way round on the same sides; not again decided, so that a negation is always the negation.
  if (is_relation(e->kind())) return make(negated(e->kind()), {e->arg(0), e->arg(1)});
  return make(ExprKind::logical_not, {e});
}

}  // namespace calque
