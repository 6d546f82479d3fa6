// Expr: one interned node of a symbolic expression. Nodes are immutable, live in the arena of their ShapeEnv and are
// compared by address: equal normal forms are the same node. Integer nodes without an environment are immortal.
#pragma once

#include <cstdint>
#include <string>

namespace calque {

class ShapeEnv;

enum class ExprKind : uint8_t {
  integer,
};

class Expr {
 public:
  ExprKind kind() const { return kind_; }
  bool is_integer() const { return kind_ == ExprKind::integer; }
  int64_t integer() const { return value_; }
  ShapeEnv* env() const { return env_; }

  explicit Expr(int64_t value) : kind_(ExprKind::integer), value_(value) {}

 private:
  ExprKind kind_;
  int64_t value_ = 0;
  ShapeEnv* env_ = nullptr;
};

}  // namespace calque
