// Arithmetic on value ranges: the smallest range that is sure to hold every result. Bounds that leave 64 bits become
// unbounded, never wrong.
#pragma once

#include <limits>
#include <optional>

#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"

namespace calque {

inline bool range_is_single(ValueRange r) { return r.lower == r.upper; }
inline bool range_is_empty(ValueRange r) { return r.lower > r.upper; }
inline bool range_contains(ValueRange r, int64_t v) { return r.lower <= v && v <= r.upper; }
inline ValueRange range_of_integer(int64_t v) {
  // The extremes of 64 bits mean "unbounded", so these two values can only be bounded on one side.
  if (v == INT64_MIN) return {INT64_MIN, INT64_MIN + 1};
  if (v == INT64_MAX) return {INT64_MAX - 1, INT64_MAX};
  return {v, v};
}
ValueRange range_intersect(ValueRange a, ValueRange b);
ValueRange range_union(ValueRange a, ValueRange b);
ValueRange range_add(ValueRange a, ValueRange b);
ValueRange range_negate(ValueRange a);
ValueRange range_mul(ValueRange a, ValueRange b);
ValueRange range_scale(ValueRange a, int64_t factor);
ValueRange range_pow(ValueRange a, int64_t exponent);
ValueRange range_floor_div(ValueRange a, ValueRange b);
ValueRange range_mod(ValueRange a, ValueRange b);
ValueRange range_max(ValueRange a, ValueRange b);
ValueRange range_min(ValueRange a, ValueRange b);

ValueRange range_bitwise(ExprKind kind, ValueRange a, ValueRange b);

// Ranges of floats: inclusive, infinities where nothing is known. Ends are moved outwards by what rounding may add.
struct FloatRange {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
};
FloatRange float_range_of(ValueRange r);
FloatRange float_range_add(FloatRange a, FloatRange b);
FloatRange float_range_mul(FloatRange a, FloatRange b);
FloatRange float_range_div(FloatRange a, FloatRange b);
FloatRange float_range_opaque(OpaqueFunction function, FloatRange a);
ValueRange integer_range(FloatRange r, ExprKind rounding);
std::optional<bool> decide_floats(ExprKind relation, FloatRange a, FloatRange b);

// Python's // and % of plain values; the divisor is not zero.
int64_t floor_quotient(int64_t a, int64_t b);  // a UserError on INT64_MIN // -1
int64_t floor_remainder(int64_t a, int64_t b);
double float_floor_quotient(double a, double b);
double float_floor_remainder(double a, double b);
// Rounding of a / b for b > 0 where a may be an unbounded end, which stays.
int64_t bound_floor_div(int64_t a, int64_t b);
int64_t bound_ceil_div(int64_t a, int64_t b);

}  // namespace calque
