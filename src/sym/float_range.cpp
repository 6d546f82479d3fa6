// Ranges of floats, and of integers made from them. An end that was computed is moved outwards by one step, so that
// rounding cannot make a range too narrow; ends that are exact stay exact.
#include <algorithm>
#include <cmath>

#include "sym/knowledge.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

FloatRange hull(std::initializer_list<double> corners) {
  FloatRange out{infinity, -infinity};
  for (const double c : corners) {
    if (std::isnan(c)) return {};
    out.lower = std::min(out.lower, c);
    out.upper = std::max(out.upper, c);
  }
  return {std::nextafter(out.lower, -infinity), std::nextafter(out.upper, infinity)};
}

}  // namespace

FloatRange float_range_of(ValueRange r) {
  FloatRange out;
  if (r.lower != ValueRange::unbounded_below) out.lower = static_cast<double>(r.lower);
  if (r.upper != ValueRange::unbounded_above) out.upper = static_cast<double>(r.upper);
  // Beyond 53 bits the conversion rounds.
  constexpr double exact = 9007199254740992.0;
  if (std::fabs(out.lower) > exact) out.lower = std::nextafter(out.lower, -infinity);
  if (std::fabs(out.upper) > exact) out.upper = std::nextafter(out.upper, infinity);
  return out;
}

FloatRange float_range_add(FloatRange a, FloatRange b) {
  return {std::nextafter(a.lower + b.lower, -infinity), std::nextafter(a.upper + b.upper, infinity)};
}

FloatRange float_range_mul(FloatRange a, FloatRange b) {
  const auto times = [](double x, double y) { return x == 0 || y == 0 ? 0.0 : x * y; };
  FloatRange out =
      hull({times(a.lower, b.lower), times(a.lower, b.upper), times(a.upper, b.lower), times(a.upper, b.upper)});
  if (a.lower >= 0 && b.lower >= 0) out.lower = std::max(out.lower, 0.0);
  return out;
}

FloatRange float_range_div(FloatRange a, FloatRange b) {
  if (b.lower <= 0 && b.upper >= 0) return {};
  const auto over = [](double x, double y) { return std::isinf(x) && std::isinf(y) ? 0.0 : x / y; };
  FloatRange out = hull({over(a.lower, b.lower), over(a.lower, b.upper), over(a.upper, b.lower), over(a.upper, b.upper)});
  if (std::isinf(a.upper) && b.lower > 0) out.upper = infinity;
  if (std::isinf(a.lower) && b.lower > 0) out.lower = -infinity;
  if (b.upper < 0 && (std::isinf(a.lower) || std::isinf(a.upper))) return {};
  if (a.lower >= 0 && b.lower > 0) out.lower = std::max(out.lower, 0.0);
  return out;
}

FloatRange float_range_opaque(OpaqueFunction function, FloatRange a) {
  switch (function) {
    case OpaqueFunction::sqrt: {
      const FloatRange r = hull({std::sqrt(std::max(a.lower, 0.0)), std::sqrt(std::max(a.upper, 0.0))});
      return {std::max(r.lower, 0.0), r.upper};
    }
    case OpaqueFunction::cos:
    case OpaqueFunction::sin:
    case OpaqueFunction::tanh: return {-1, 1};
    case OpaqueFunction::cosh: return {1, infinity};
    case OpaqueFunction::exp: return {0, infinity};
    case OpaqueFunction::log2:
      if (a.lower < 1) return {};
      return {std::max(0.0, std::nextafter(std::log2(a.lower), -infinity)), std::nextafter(std::log2(a.upper), infinity)};
    case OpaqueFunction::sinh:
    case OpaqueFunction::tan:
    case OpaqueFunction::asin:
    case OpaqueFunction::acos:
    case OpaqueFunction::atan:
    case OpaqueFunction::log:
    case OpaqueFunction::asinh: return {};
  }
  return {};
}

ValueRange integer_range(FloatRange r, ExprKind rounding) {
  constexpr double largest = 9.2e18;
  ValueRange out;
  if (const double v = round_by(rounding, r.lower); std::fabs(v) < largest) out.lower = static_cast<int64_t>(v);
  if (const double v = round_by(rounding, r.upper); std::fabs(v) < largest) out.upper = static_cast<int64_t>(v);
  return out;
}

std::optional<bool> decide_floats(ExprKind relation, FloatRange a, FloatRange b) {
  const bool less = a.upper<b.lower, more = a.lower> b.upper;
  switch (comparison_of(relation)) {
    case Comparison::equal:
      if (less || more) return false;
      break;
    case Comparison::unequal:
      if (less || more) return true;
      break;
    case Comparison::less:
      if (less) return true;
      if (a.lower >= b.upper) return false;
      break;
    case Comparison::less_equal:
      if (a.upper <= b.lower) return true;
      if (more) return false;
      break;
    case Comparison::greater:
      if (more) return true;
      if (a.upper <= b.lower) return false;
      break;
    case Comparison::greater_equal:
      if (a.lower >= b.upper) return true;
      if (less) return false;
      break;
  }
  return std::nullopt;
}

ValueRange range_bitwise(ExprKind kind, ValueRange a, ValueRange b) {
  if (kind == ExprKind::bitwise_and) {
    if (a.lower >= 0 && b.lower >= 0) return {0, std::min(a.upper, b.upper)};
    if (a.lower >= 0) return {0, a.upper};
    if (b.lower >= 0) return {0, b.upper};
    return {};
  }
  if (a.lower < 0 || b.lower < 0) return {};
  const int64_t largest = std::max(a.upper, b.upper);
  int64_t ones = ValueRange::unbounded_above;
  if (largest < (int64_t{1} << 61)) {
    ones = 1;
    while (ones <= largest) ones = ones * 2;
    ones -= 1;
  }
  return {kind == ExprKind::bitwise_or ? std::max(a.lower, b.lower) : 0, ones};
}

FloatRange Knowledge::float_range(const Expr* e, Premises* premises) {
  const auto of = [&](const Expr* a) { return float_range(a, premises); };
  if (!e->is_float()) return float_range_of(range(e, premises));
  switch (e->kind()) {
    case ExprKind::float_number:
      if (std::isnan(e->float_value())) return {};
      return {e->float_value(), e->float_value()};
    case ExprKind::symbol:
      if (const Expr* target = replacements_[e->symbol_index()]) return of(target);
      return {};
    case ExprKind::to_float: return of(e->arg(0));
    case ExprKind::add:
    case ExprKind::mul: {
      FloatRange out = of(e->arg(0));
      for (const Expr* a : e->args().subspan(1))
        out = e->kind() == ExprKind::add ? float_range_add(out, of(a)) : float_range_mul(out, of(a));
      return out;
    }
    case ExprKind::int_true_div:
    case ExprKind::float_true_div: return float_range_div(of(e->arg(0)), of(e->arg(1)));
    case ExprKind::max:
    case ExprKind::min: {
      FloatRange out = of(e->arg(0));
      for (const Expr* a : e->args().subspan(1)) {
        const FloatRange r = of(a);
        out = e->kind() == ExprKind::max ? FloatRange{std::max(out.lower, r.lower), std::max(out.upper, r.upper)}
                                         : FloatRange{std::min(out.lower, r.lower), std::min(out.upper, r.upper)};
      }
      return out;
    }
    case ExprKind::where:
    case ExprKind::piecewise: {
      const FloatRange a = of(e->arg(1)), b = of(e->arg(2));
      return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)};
    }
    case ExprKind::absolute: {
      const FloatRange r = of(e->arg(0));
      return {std::max({0.0, r.lower, -r.upper}), std::max(-r.lower, r.upper)};
    }
    case ExprKind::opaque_unary: return float_range_opaque(e->opaque_function(), of(e->arg(0)));
    case ExprKind::integer:
    case ExprKind::pow:
    case ExprKind::floor_div:
    case ExprKind::clean_div:
    case ExprKind::mod:
    case ExprKind::python_mod:
    case ExprKind::pow_by_natural:
    case ExprKind::float_pow:
    case ExprKind::floor_to_int:
    case ExprKind::ceil_to_int:
    case ExprKind::trunc_to_int:
    case ExprKind::round_to_int:
    case ExprKind::round_decimal:
    case ExprKind::trunc_to_float:
    case ExprKind::floor:
    case ExprKind::bitwise_and:
    case ExprKind::bitwise_or:
    case ExprKind::bitwise_xor:
    case ExprKind::dense_indicator:
    case ExprKind::eq:
    case ExprKind::ne:
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge:
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::logical_not:
    case ExprKind::true_value:
    case ExprKind::false_value: break;
  }
  return {};
}

}  // namespace calque
