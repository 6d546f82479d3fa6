#include "sym/range.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"

namespace calque {

namespace {

constexpr int64_t below = ValueRange::unbounded_below;
constexpr int64_t above = ValueRange::unbounded_above;

bool infinite(int64_t v) { return v == below || v == above; }

// Lower ends: an unbounded one absorbs; overflow downwards is unbounded, upwards stays a correct lower bound.
int64_t add_ends(int64_t a, int64_t b) {
  if (a == below || b == below) return below;
  if (a == above || b == above) return above;
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? below : above;
  return r;
}

int64_t add_upper_ends(int64_t a, int64_t b) {
  if (a == above || b == above) return above;
  return add_ends(a, b);
}

int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  int64_t r;
  if (infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &r)) return negative ? below : above;
  return r;
}

// A bound that saturated on the wrong side is still one step inside 64 bits: "at least above" cannot be said.
ValueRange settle(ValueRange r) {
  if (r.lower == above) r.lower = above - 1;
  if (r.upper == below) r.upper = below + 1;
  return r;
}

int64_t divide_ends(int64_t a, int64_t b) {  // b is not zero
  const bool negative = (a < 0) != (b < 0);
  if (infinite(a) && infinite(b)) return negative ? -1 : 0;
  if (infinite(b)) return a == 0 || !negative ? 0 : -1;
  if (infinite(a)) return negative ? below : above;
  if (a == below + 1 && b == -1) return above;
  return floor_quotient(a, b);
}

ValueRange divide_by_one_sign(ValueRange a, ValueRange b) {
  const int64_t corners[] = {divide_ends(a.lower, b.lower), divide_ends(a.lower, b.upper), divide_ends(a.upper, b.lower),
                             divide_ends(a.upper, b.upper)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

}  // namespace

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == -1 && a == INT64_MIN) throw UserError("floor_div: integer overflow in " + std::to_string(a) + " // -1");
  const int64_t q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

double float_floor_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

double float_floor_quotient(double a, double b) {
  // As Python: (a - a % b) / b, brought to the nearest whole number.
  const double q = (a - std::fmod(a, b)) / b - ((std::fmod(a, b) != 0 && (std::fmod(a, b) < 0) != (b < 0)) ? 1.0 : 0.0);
  if (q == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(q);
  return q - whole > 0.5 ? whole + 1.0 : whole;
}

int64_t bound_floor_div(int64_t a, int64_t b) { return infinite(a) ? a : floor_quotient(a, b); }

int64_t bound_ceil_div(int64_t a, int64_t b) {
  return infinite(a) ? a : floor_quotient(a, b) + (floor_remainder(a, b) != 0 ? 1 : 0);
}

ValueRange range_intersect(ValueRange a, ValueRange b) { return {std::max(a.lower, b.lower), std::min(a.upper, b.upper)}; }
ValueRange range_union(ValueRange a, ValueRange b) { return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)}; }

ValueRange range_add(ValueRange a, ValueRange b) {
  return settle({add_ends(a.lower, b.lower), add_upper_ends(a.upper, b.upper)});
}

ValueRange range_negate(ValueRange a) {
  const auto negate = [](int64_t v) { return v == below ? above : v == above ? below : -v; };
  return {negate(a.upper), negate(a.lower)};
}

ValueRange range_mul(ValueRange a, ValueRange b) {
  const int64_t corners[] = {multiply_ends(a.lower, b.lower), multiply_ends(a.lower, b.upper),
                             multiply_ends(a.upper, b.lower), multiply_ends(a.upper, b.upper)};
  return settle({*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)});
}

ValueRange range_scale(ValueRange a, int64_t factor) { return range_mul(a, range_of_integer(factor)); }

ValueRange range_pow(ValueRange a, int64_t exponent) {
  if (exponent == 0) return {1, 1};
  const auto power = [](int64_t base, int64_t n) {
    if (base == 0 || base == 1) return base;
    if (base == -1) return n % 2 == 0 ? int64_t{1} : int64_t{-1};
    int64_t out = 1;
    for (int64_t i = 0; i < n && !infinite(out); ++i) out = multiply_ends(out, base);
    if (infinite(out)) return base < 0 && n % 2 != 0 ? below : above;
    return out;
  };
  const int64_t lower = power(a.lower, exponent);
  const int64_t upper = power(a.upper, exponent);
  if (exponent % 2 != 0) return settle({lower, upper});
  if (a.lower >= 0) return settle({lower, upper});
  if (a.upper <= 0) return settle({upper, lower});
  return settle({0, std::max(lower, upper)});
}

ValueRange range_floor_div(ValueRange a, ValueRange b) {
  ValueRange out{1, 0};
  const auto join = [&](ValueRange r) { out = range_is_empty(out) ? r : range_union(out, r); };
  if (b.upper >= 1) join(divide_by_one_sign(a, {std::max<int64_t>(b.lower, 1), b.upper}));
  if (b.lower <= -1) join(divide_by_one_sign(a, {b.lower, std::min<int64_t>(b.upper, -1)}));
  return range_is_empty(out) ? ValueRange{} : settle(out);
}

ValueRange range_mod(ValueRange a, ValueRange b) {
  if (a.lower >= 0 && b.lower > a.upper) return a;
  ValueRange out{1, 0};
  if (b.upper >= 1) {
    out = {0, b.upper == above ? above : b.upper - 1};
    if (a.lower >= 0) out.upper = std::min(out.upper, a.upper);
  }
  if (b.lower <= -1) {
    const ValueRange negative{b.lower == below ? below : b.lower + 1, 0};
    out = range_is_empty(out) ? negative : range_union(out, negative);
  }
  return range_is_empty(out) ? ValueRange{} : out;
}

ValueRange range_max(ValueRange a, ValueRange b) { return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)}; }
ValueRange range_min(ValueRange a, ValueRange b) { return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)}; }

}  // namespace calque
