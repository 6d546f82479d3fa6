// The value of an expression under given symbol values, with Python's semantics.
#pragma once

#include <functional>
#include <optional>

#include "calque/sym/expr.h"

namespace calque {

struct Number {
  Number() = default;
  Number(int64_t v) : integer(v) {}
  Number(double v) : is_float(true), real(v) {}

  bool is_float = false;
  int64_t integer = 0;  // a boolean is 0 or 1
  double real = 0;
  double as_double() const { return is_float ? real : static_cast<double>(integer); }
};

using SymbolValue = std::function<std::optional<Number>(size_t symbol)>;

// None if a symbol that matters has no value. Overflow and division by zero are UserErrors.
std::optional<Number> evaluate_expr(const Expr* e, const SymbolValue& value_of);

}  // namespace calque
