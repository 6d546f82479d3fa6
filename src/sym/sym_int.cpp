#include "calque/sym/sym_int.h"

#include <bit>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"

namespace calque {

namespace {

constexpr int64_t pointer_tag = INT64_MIN;

// Integers too negative for the word. Never freed: a SymInt owns nothing, so such a value has to outlive everything.
const Expr* immortal_integer(int64_t value) {
  static std::mutex mutex;
  static auto* by_value = new std::unordered_map<int64_t, Expr>();
  const std::lock_guard lock(mutex);
  return &by_value->try_emplace(value, value).first->second;
}

[[noreturn]] void throw_overflow(const char* what, int64_t a, const char* sign, int64_t b) {
  throw UserError(std::string(what) + ": integer overflow in " + std::to_string(a) + " " + sign + " " + std::to_string(b) +
                  " (the result does not fit 64 bits; is a size or a stride too large?)");
}

[[noreturn]] void throw_zero_division(const char* what, int64_t a) {
  throw UserError(std::string(what) + ": division of " + std::to_string(a) + " by zero");
}

bool integer_value(SymInt a, int64_t& value) {
  const Expr* e = a.expr();
  if (e == nullptr) {
    value = a.word();
    return true;
  }
  if (!e->is_integer()) return false;
  value = e->integer();
  return true;
}

bool integer_values(SymInt a, SymInt b, int64_t& x, int64_t& y) { return integer_value(a, x) && integer_value(b, y); }

}  // namespace

SymInt::SymInt(const Expr* expr) {
  internal_assert(expr != nullptr, "a SymInt was made from no expression");
  if (expr->is_integer() && expr->integer() >= smallest_plain) {
    word_ = expr->integer();
  } else {
    if (expr->is_integer()) expr = immortal_integer(expr->integer());
    word_ = pointer_tag | std::bit_cast<int64_t>(expr);
  }
}

const Expr* SymInt::expr() const {
  if (!is_symbolic()) return nullptr;
  return std::bit_cast<const Expr*>(word_ ^ pointer_tag);
}

SymInt SymInt::big_negative(int64_t value) {
  SymInt out;
  out.word_ = pointer_tag | std::bit_cast<int64_t>(immortal_integer(value));
  return out;
}

int64_t SymInt::as_int_slow() const {
  int64_t value;
  if (integer_value(*this, value)) return value;
  throw UserError(ErrorKind::data_dependent, "a plain integer was needed but the value is symbolic: " + str());
}

int64_t SymInt::guard_int_slow(std::source_location) const { return as_int_slow(); }

std::string SymInt::str() const {
  int64_t value;
  if (integer_value(*this, value)) return std::to_string(value);
  throw InternalError("symbolic integers cannot be printed yet");
}

SymBool::SymBool(const Expr* expr) : word_(std::bit_cast<uintptr_t>(expr)) {}
const Expr* SymBool::expr() const { return is_symbolic() ? std::bit_cast<const Expr*>(word_) : nullptr; }
bool SymBool::is_known(bool& value) const {
  if (is_symbolic()) return false;
  value = plain();
  return true;
}
std::string SymBool::str() const { return plain() ? "True" : "False"; }

SymFloat::SymFloat(const Expr* expr) : expr_(expr) {}
double SymFloat::as_float() const {
  if (is_symbolic()) throw UserError(ErrorKind::data_dependent, "a plain float was needed but the value is symbolic");
  return value_;
}
double SymFloat::guard_float(std::source_location) const { return as_float(); }
std::string SymFloat::str() const { return std::to_string(value_); }

namespace sym_detail {

namespace {
[[noreturn]] void no_symbols() { throw InternalError("symbolic integers are not available"); }
}  // namespace

SymInt add(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (!integer_values(a, b, x, y)) no_symbols();
  if (__builtin_add_overflow(x, y, &r)) throw_overflow("add", x, "+", y);
  return r;
}
SymInt sub(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (!integer_values(a, b, x, y)) no_symbols();
  if (__builtin_sub_overflow(x, y, &r)) throw_overflow("sub", x, "-", y);
  return r;
}
SymInt mul(SymInt a, SymInt b) {
  int64_t x, y, r;
  if (!integer_values(a, b, x, y)) no_symbols();
  if (__builtin_mul_overflow(x, y, &r)) throw_overflow("mul", x, "*", y);
  return r;
}
SymInt floor_div(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  if (y == 0) throw_zero_division("floor_div", x);
  if (x == INT64_MIN && y == -1) throw_overflow("floor_div", x, "//", y);
  const int64_t q = x / y;
  return q - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}
SymInt mod(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  if (y == 0) throw_zero_division("mod", x);
  if (y == -1) return 0;
  const int64_t r = x % y;
  return (r != 0 && (r < 0) != (y < 0)) ? r + y : r;
}
SymInt min(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  return x < y ? a : b;
}
SymInt max(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  return x < y ? b : a;
}
SymBool eq(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  return x == y;
}
SymBool lt(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  return x < y;
}
SymBool le(SymInt a, SymInt b) {
  int64_t x, y;
  if (!integer_values(a, b, x, y)) no_symbols();
  return x <= y;
}
SymBool logical_and(SymBool, SymBool) { no_symbols(); }
SymBool logical_or(SymBool, SymBool) { no_symbols(); }
SymBool logical_not(SymBool) { no_symbols(); }
bool guard(SymBool, std::source_location) { no_symbols(); }
bool guard_or(SymBool, bool) { no_symbols(); }
bool expect_true(SymBool, std::source_location) { no_symbols(); }

}  // namespace sym_detail

SymIntList as_sym(IntList values) {
  for (const int64_t v : values)
    if (v < -(int64_t{1} << 62))
      throw UserError("the value " + std::to_string(v) + " is too small for a size, a stride or an offset");
  return {reinterpret_cast<const SymInt*>(values.data()), values.size()};
}

}  // namespace calque
