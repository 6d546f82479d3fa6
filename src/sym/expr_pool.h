// ExprPool: makes the nodes of one environment. Its constructors bring what they are given into normal form, as sympy's
// would; a node that exists already is handed out again. The pool owns the nodes; it asks Knowledge for value ranges
// where a simplification depends on them (ranges only ever narrow, so a node once simplified stays right).
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "calque/base/small_vector.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"

namespace calque {

class Knowledge;

// coefficient * rest; rest is never an add, an integer or a mul with a coefficient. A null rest stands for 1.
struct Term {
  int64_t coefficient;
  const Expr* rest;
};
using Terms = SmallVector<Term, 6>;

// base ** exponent, exponent > 0; base is never a mul or a pow.
struct Factor {
  const Expr* base;
  int64_t exponent;
};
using Factors = SmallVector<Factor, 6>;
using ExprArgs = SmallVector<const Expr*, 6>;
inline std::span<const Expr* const> all(const ExprArgs& args) { return {args.data(), args.size()}; }

template <class List>
void append(List& list, const List& more) {
  list.reserve(list.size() + more.size());
  for (const auto& item : more) list.push_back(item);
}
template <class List, class Predicate>
void erase_where(List& list, Predicate&& unwanted) {
  list.resize(static_cast<size_t>(std::remove_if(list.begin(), list.end(), unwanted) - list.begin()));
}

Term split_term(const Expr* e);        // any node but an add
Terms terms_of(const Expr* e);         // the sum's parts; one term for what is not a sum
Factors factors_of(const Expr* rest);  // of a Term's rest (null: none)

class ExprPool {
 public:
  explicit ExprPool(ShapeEnv* env);
  void set_knowledge(Knowledge* knowledge) { knowledge_ = knowledge; }
  ShapeEnv* env() const { return env_; }

  const Expr* integer(int64_t value);
  const Expr* float_number(double value);
  const Expr* symbol(size_t index, bool unbacked, bool is_float);
  const Expr* boolean(bool value);

  const Expr* add(const Expr* a, const Expr* b);
  const Expr* sub(const Expr* a, const Expr* b);
  const Expr* sum(Terms terms);  // in any order, like terms not yet collected
  const Expr* sum_of(std::span<const Expr* const> args);
  const Expr* product_of(std::span<const Expr* const> args);
  const Expr* scale(int64_t factor, const Expr* e);
  const Expr* mul(const Expr* a, const Expr* b);
  const Expr* product(int64_t coefficient, Factors factors);  // in any order
  const Expr* pow(const Expr* base, int64_t exponent);
  // floor_div or clean_div. Division by a plain zero stays as it was written, here and in mod: simplification may come
  // across one in code that is never reached. The operators that users call refuse it.
  const Expr* divide(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* floor_div(const Expr* a, const Expr* b) { return divide(ExprKind::floor_div, a, b); }
  // Python's remainder: a mod where neither side can be negative, else a python_mod.
  const Expr* mod(const Expr* a, const Expr* b);
  const Expr* mod(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* extremum(ExprKind kind, std::vector<const Expr*> args);  // max or min
  const Expr* where(const Expr* condition, const Expr* a, const Expr* b);
  const Expr* pow_by_natural(const Expr* base, const Expr* exponent);
  const Expr* float_function(ExprKind kind, std::span<const Expr* const> args);
  const Expr* opaque(OpaqueFunction function, const Expr* a);
  const Expr* absolute(const Expr* a);
  const Expr* bitwise(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* piecewise(const Expr* condition, const Expr* a, const Expr* b);
  const Expr* dense_indicator(std::span<const Expr* const> sizes_and_strides);

  const Expr* relation(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* relation_as_written(ExprKind kind, const Expr* a, const Expr* b);  // decided only for two numbers
  const Expr* connective(ExprKind kind, std::vector<const Expr*> args);          // logical_and or logical_or
  const Expr* logical_not(const Expr* e);

  // The same kind of node over other arguments.
  const Expr* rebuild(const Expr* e, std::span<const Expr* const> args);
  // Products of sums multiplied out, at every level. Two integer expressions without functions are equal as
  // polynomials exactly if their expanded forms are the same node. A product too large to multiply out stays.
  const Expr* expand(const Expr* e);
  // a / b as polynomials if that leaves no remainder, else null.
  const Expr* exact_quotient(const Expr* a, const Expr* b);

 private:
  const Expr* make(ExprKind kind, int64_t value, std::span<const Expr* const> args);
  const Expr* make(ExprKind kind, std::initializer_list<const Expr*> args) {
    return make(kind, 0, std::span(args.begin(), args.size()));
  }
  const Expr* float_extremum(ExprKind kind, const std::vector<const Expr*>& args);
  const Expr* float_divide(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* expand_uncached(const Expr* e);
  const Expr* exact_quotient_unchecked(const Expr* a, const Expr* b);
  const Expr* cancel_common(ExprKind kind, const Expr* a, const Expr* b);
  ValueRange range(const Expr* e) const;
  ValueRange difference_range(const Expr* a, const Expr* b);  // of a - b; unbounded where that leaves 64 bits
  bool is_not_negative_float(const Expr* e) const;
  void grow();

  // A program asks for the same products and comparisons layer by layer: the last answers, by their operands.
  struct Answer {
    const Expr* a = nullptr;
    const Expr* b = nullptr;
    const Expr* result = nullptr;
    uint32_t epoch = 0;  // of the knowledge that it was found with; products need none
    ExprKind kind = ExprKind::mul;
  };
  Answer& answer_for(ExprKind kind, const Expr* a, const Expr* b);
  const Expr* mul_uncached(const Expr* a, const Expr* b);
  const Expr* relation_uncached(ExprKind kind, const Expr* a, const Expr* b);

  ShapeEnv* env_;
  Knowledge* knowledge_ = nullptr;
  std::array<Answer, 128> answers_;
  std::pmr::monotonic_buffer_resource arena_;
  std::vector<const Expr*> table_;  // open addressing; the size is a power of two
  uint32_t count_ = 0;
};

int64_t checked_add(int64_t a, int64_t b);
int64_t checked_int(double value, const char* what);  // a whole number that has to fit 64 bits
bool is_rounding(ExprKind kind);                      // floor_to_int, ceil_to_int, trunc_to_int, round_to_int, floor
double round_by(ExprKind rounding, double value);
double round_to_digits(double value, int64_t digits);  // as Python's round(value, digits)
double opaque_value(OpaqueFunction function, double x);
bool is_dense(std::span<const int64_t> sizes_and_strides);
int64_t checked_mul(int64_t a, int64_t b);

}  // namespace calque
