// Expr: one interned node of a symbolic expression, in the normal form that sympy would print. Nodes are immutable,
// live in the arena of their ShapeEnv and are compared by address: equal normal forms are the same node. Integers that
// belong to no environment (see SymInt) are immortal. Nodes are made by the operators of SymInt, SymBool and
// sym_math.h, never directly; what is here is for reading them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

namespace calque {

class ShapeEnv;

enum class ExprKind : uint8_t {
  integer,
  float_number,
  symbol,
  add,         // an optional integer first, then terms
  mul,         // an optional integer first, then factors
  pow,         // base and a positive integer
  floor_div,   // Python's //
  clean_div,   // a // that is known to leave no remainder
  mod,         // % of values that are not negative
  python_mod,  // Python's %
  max,
  min,
  where,           // condition, if true, if false
  pow_by_natural,  // a symbolic exponent that is not negative
  to_float,
  int_true_div,    // integers, giving a float
  float_true_div,  // floats
  float_pow,
  floor_to_int,
  ceil_to_int,
  trunc_to_int,
  round_to_int,   // to even
  round_decimal,  // a float and a number of digits
  trunc_to_float,
  floor,  // sympy's own, of floats; as is_integer() writes it
  absolute,
  opaque_unary,  // sqrt, cos, ... of a float; which one is value()
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  piecewise,        // condition, if true, if false; as sym_ite writes it
  dense_indicator,  // sizes, then strides: 1 if some order of the dimensions is contiguous, else 0
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_not,
  true_value,
  false_value,
};

// In the order of their names below.
enum class OpaqueFunction : uint8_t { sqrt, cos, cosh, sin, sinh, tan, tanh, asin, acos, atan, exp, log, asinh, log2 };
inline constexpr size_t opaque_function_count = 14;
const char* opaque_name(OpaqueFunction function);  // "sqrt"

constexpr bool is_relation(ExprKind kind) { return kind >= ExprKind::eq && kind <= ExprKind::ge; }
// The relations as an enumeration of their own, so that a switch over them is whole; in the same order.
enum class Comparison : uint8_t { equal, unequal, less, less_equal, greater, greater_equal };
Comparison comparison_of(ExprKind relation);  // InternalError when it is none
constexpr bool is_boolean(ExprKind kind) { return kind >= ExprKind::eq; }
// The class that sympy's srepr would name: "FloorDiv", "StrictLessThan", "OpaqueUnaryFn_sqrt".
class Expr;
const char* sympy_name(const Expr* e);

class Expr {
 public:
  // An immortal integer; everything else is made by the environment's pool.
  explicit Expr(int64_t value) : kind_(ExprKind::integer), value_(value) {}
  Expr(const Expr&) = delete;
  Expr& operator=(const Expr&) = delete;

  ExprKind kind() const { return kind_; }
  bool is_integer() const { return kind_ == ExprKind::integer; }
  bool is_boolean() const { return calque::is_boolean(kind_); }
  bool is_float() const { return is_float_; }  // the value is a float
  std::span<const Expr* const> args() const { return {args_, n_args_}; }
  const Expr* arg(size_t i) const { return args_[i]; }

  int64_t integer() const { return value_; }                            // of an integer
  double float_value() const { return std::bit_cast<double>(value_); }  // of a float_number
  size_t symbol_index() const { return static_cast<size_t>(value_); }   // of a symbol, into ShapeEnv::symbols()
  int64_t constant() const { return value_; }                           // of an add: its integer, or 0
  int64_t coefficient() const { return value_; }                        // of a mul: its integer, or 1
  int64_t exponent() const { return value_; }                           // of a pow
  OpaqueFunction opaque_function() const { return static_cast<OpaqueFunction>(value_); }
  const Expr* without_coefficient() const { return rest_; }  // of a mul
  bool has_unbacked() const { return has_unbacked_; }
  // Symbol i sets bit i % 64: a quick way to see that a symbol cannot occur.
  uint64_t symbol_mask() const { return symbol_mask_; }
  uint32_t id() const { return id_; }                // the order of creation within the environment
  uint32_t tree_size() const { return tree_size_; }  // nodes counted with repetition, saturating
  uint16_t depth() const { return depth_; }
  ShapeEnv* env() const { return env_; }  // null for an immortal integer
  std::string str() const;                // as sympy prints it

  // What the environment has worked out about this node, each with the state of knowledge it was worked out in.
  struct Cache {
    const Expr* expanded = nullptr;
    const Expr* replaced = nullptr;
    const Expr* simplified = nullptr;
    uint32_t replaced_at = 0;
    uint32_t simplified_at = 0;
    uint32_t range_at = 0;
    uint32_t known_at = 0;
    int64_t lower = 0, upper = 0;
    int8_t known = -1;  // a boolean's value, or -1 for undecided
  };
  Cache& cache() const { return cache_; }

 private:
  friend class ExprPool;
  Expr() = default;

  ExprKind kind_ = ExprKind::integer;
  bool is_float_ = false;
  bool has_unbacked_ = false;
  uint16_t depth_ = 1;
  uint32_t n_args_ = 0;
  uint32_t id_ = 0;
  uint32_t tree_size_ = 1;
  int64_t value_ = 0;
  uint64_t hash_ = 0;
  uint64_t symbol_mask_ = 0;
  const Expr* const* args_ = nullptr;
  const Expr* rest_ = nullptr;
  ShapeEnv* env_ = nullptr;
  mutable Cache cache_;
};

}  // namespace calque
