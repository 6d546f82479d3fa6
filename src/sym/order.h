// The order in which sympy prints the parts of sums, products and functions, and its way to write floats.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calque/sym/expr.h"

namespace calque {

// Terms of an add, factors of a mul (the number first), arguments of a Max, Min, And or Or (small ones first); others
// as they are.
std::vector<const Expr*> printing_order(const Expr* e);
// The order in which sympy keeps them, which PyTorch's Python printer follows.
std::vector<const Expr*> stored_order(const Expr* e);
std::vector<const Expr*> sorted_by_key(std::span<const Expr* const> args);  // sympy's default_sort_key
// As mpmath writes it: significant digits, fixed point unless the exponent is extreme.
std::string float_text(double value, int digits, bool strip_zeros);

}  // namespace calque
