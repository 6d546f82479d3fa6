// SymInt: an integer that may be symbolic, in one machine word. A plain value is stored as itself; a symbolic one is a
// tagged pointer to an interned expression. Expressions belong to their ShapeEnv; whoever keeps a SymInt beyond the
// environment's life (tensors, graphs) shares ownership of the environment. SymInt itself owns nothing.
// Comparing gives a SymBool, which becomes a bool only through guard, guard_or or check: there is no implicit way.
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>

#include "calque/base/list_ref.h"
#include "calque/base/small_vector.h"

namespace calque {

class Expr;  // an interned expression, see sym/expr.h
class ShapeEnv;

class SymInt {
 public:
  constexpr SymInt() = default;
  template <std::integral T>
  constexpr SymInt(T value) : word_(static_cast<int64_t>(value)) {
    if (!is_word()) [[unlikely]]
      *this = big_negative(word_);
  }
  explicit SymInt(const Expr* expr);  // an Integer expression becomes a plain value

  constexpr bool is_symbolic() const { return !is_word() && (word_ & 1) == 0; }
  constexpr bool is_word() const { return word_ >= smallest_plain; }  // the word is the value
  const Expr* expr() const;                                           // the expression; null for a plain value

  // The plain value; a UserError if symbolic (a kernel was reached with symbolic sizes).
  constexpr int64_t as_int() const {
    if (!is_word()) [[unlikely]]
      return as_int_slow();
    return word_;
  }
  // The plain value, specialising a symbolic one to its hint with an equality guard.
  int64_t guard_int(std::source_location where = std::source_location::current()) const {
    return is_word() ? word_ : guard_int_slow(where);
  }
  std::string str() const;  // as sympy prints it: "2*s0 + 1"

  // Same word: same plain value or same interned expression. Never guards.
  friend constexpr bool identical(SymInt a, SymInt b) { return a.word_ == b.word_; }
  constexpr int64_t word() const { return word_; }

 private:
  // Words below this are tagged pointers (top bits 10). Plain values down there (there is no size or stride that
  // small, but INT64_MIN is a legal argument) are pointers to immortal integers, with the lowest bit set.
  static constexpr int64_t smallest_plain = -(int64_t{1} << 62);
  static SymInt big_negative(int64_t value);
  int64_t as_int_slow() const;
  int64_t guard_int_slow(std::source_location where) const;

  int64_t word_ = 0;
};

static_assert(sizeof(SymInt) == sizeof(int64_t));

class SymBool {
 public:
  constexpr SymBool() = default;
  constexpr SymBool(bool value) : word_(value ? 1 : 0) {}
  explicit SymBool(const Expr* expr);

  constexpr bool is_symbolic() const { return word_ > 1; }
  const Expr* expr() const;
  // True or false without guarding where ranges or algebra decide it; nothing is recorded.
  bool is_known(bool& value) const;
  std::string str() const;
  constexpr bool plain() const { return word_ == 1; }

 private:
  uintptr_t word_ = 0;
};

class SymFloat {
 public:
  constexpr SymFloat() = default;
  constexpr SymFloat(double value) : value_(value) {}
  explicit SymFloat(const Expr* expr);

  constexpr bool is_symbolic() const { return expr_ != nullptr; }
  const Expr* expr() const { return expr_; }
  double as_float() const;  // UserError if symbolic
  double guard_float(std::source_location where = std::source_location::current()) const;
  std::string str() const;

 private:
  double value_ = 0;
  const Expr* expr_ = nullptr;
};

namespace sym_detail {  // the symbolic halves of the operators below
SymInt add(SymInt a, SymInt b);
SymInt sub(SymInt a, SymInt b);
SymInt mul(SymInt a, SymInt b);
SymInt floor_div(SymInt a, SymInt b);
SymInt mod(SymInt a, SymInt b);
SymInt min(SymInt a, SymInt b);
SymInt max(SymInt a, SymInt b);
SymBool eq(SymInt a, SymInt b);
SymBool lt(SymInt a, SymInt b);
SymBool le(SymInt a, SymInt b);
SymBool gt(SymInt a, SymInt b);
SymBool ge(SymInt a, SymInt b);
SymBool logical_and(SymBool a, SymBool b);
SymBool logical_or(SymBool a, SymBool b);
SymBool logical_not(SymBool a);
bool guard(SymBool condition, std::source_location where);
bool guard_or(SymBool condition, bool otherwise, std::source_location where);
bool expect_true(SymBool condition, std::source_location where);
constexpr bool both_plain(SymInt a, SymInt b) { return a.is_word() && b.is_word(); }
}  // namespace sym_detail

inline SymInt operator+(SymInt a, SymInt b) {
  int64_t r;
  if (sym_detail::both_plain(a, b) && !__builtin_add_overflow(a.word(), b.word(), &r)) [[likely]]
    return r;
  return sym_detail::add(a, b);
}
inline SymInt operator-(SymInt a, SymInt b) {
  int64_t r;
  if (sym_detail::both_plain(a, b) && !__builtin_sub_overflow(a.word(), b.word(), &r)) [[likely]]
    return r;
  return sym_detail::sub(a, b);
}
inline SymInt operator*(SymInt a, SymInt b) {
  int64_t r;
  if (sym_detail::both_plain(a, b) && !__builtin_mul_overflow(a.word(), b.word(), &r)) [[likely]]
    return r;
  return sym_detail::mul(a, b);  // overflow of plain values: UserError
}
inline SymInt operator-(SymInt a) { return SymInt(0) - a; }
inline SymInt& operator+=(SymInt& a, SymInt b) { return a = a + b; }
inline SymInt& operator-=(SymInt& a, SymInt b) { return a = a - b; }
inline SymInt& operator*=(SymInt& a, SymInt b) { return a = a * b; }

// Python's // and %: rounding towards minus infinity. Division by zero is a UserError.
inline SymInt floor_div(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b) && a.word() >= 0 && b.word() > 0) [[likely]]
    return a.word() / b.word();
  return sym_detail::floor_div(a, b);
}
inline SymInt operator%(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b) && a.word() >= 0 && b.word() > 0) [[likely]]
    return a.word() % b.word();
  return sym_detail::mod(a, b);
}
inline SymInt sym_min(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() < b.word() ? a : b;
  return sym_detail::min(a, b);
}
inline SymInt sym_max(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() < b.word() ? b : a;
  return sym_detail::max(a, b);
}

inline SymBool operator==(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() == b.word();
  return sym_detail::eq(a, b);
}
inline SymBool operator<(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() < b.word();
  return sym_detail::lt(a, b);
}
inline SymBool operator<=(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() <= b.word();
  return sym_detail::le(a, b);
}
inline SymBool operator>(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() > b.word();
  return sym_detail::gt(a, b);
}
inline SymBool operator>=(SymInt a, SymInt b) {
  if (sym_detail::both_plain(a, b)) [[likely]]
    return a.word() >= b.word();
  return sym_detail::ge(a, b);
}
inline SymBool operator!(SymBool a) { return a.is_symbolic() ? sym_detail::logical_not(a) : SymBool(!a.plain()); }
inline SymBool operator!=(SymInt a, SymInt b) { return !(a == b); }
inline SymBool sym_and(SymBool a, SymBool b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.plain() && b.plain();
  return sym_detail::logical_and(a, b);
}
inline SymBool sym_or(SymBool a, SymBool b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.plain() || b.plain();
  return sym_detail::logical_or(a, b);
}

// The three ways from SymBool to bool.
// guard: decides by the hint and records the decision as a guard (unbacked: a data-dependent UserError).
inline bool guard(SymBool condition, std::source_location where = std::source_location::current()) {
  return condition.is_symbolic() ? sym_detail::guard(condition, where) : condition.plain();
}
// guard_or: decides without a new guard where ranges and algebra know the answer or a hint exists and guarding is
// needed; for unbacked values that are undecided, takes `otherwise`.
inline bool guard_or(SymBool condition, bool otherwise, std::source_location where = std::source_location::current()) {
  return condition.is_symbolic() ? sym_detail::guard_or(condition, otherwise, where) : condition.plain();
}
// check: the condition must hold; for symbolic ones a guard or a deferred runtime assert, for a false one the caller
// throws its own error: `if (!check(cond)) throw UserError(...)`.
[[nodiscard]] inline bool check(SymBool condition, std::source_location where = std::source_location::current()) {
  return condition.is_symbolic() ? sym_detail::expect_true(condition, where) : condition.plain();
}

using SymInts = SmallVector<SymInt, 6>;
using SymIntList = ListRef<SymInt>;
using IntList = ListRef<int64_t>;

// Plain integers viewed as SymInts without copying. Values in the tagged range are refused.
SymIntList as_sym(IntList values);

}  // namespace calque
