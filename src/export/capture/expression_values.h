// Symbolic conditions as Python would compute them: which function stands for an expression, and its value when its symbols
// have values, plain or symbolic (of another environment).
#pragma once

#include <unordered_map>
#include <vector>

#include "calque/op/value.h"
#include "calque/sym/expr.h"

namespace calque {

std::vector<const Expr*> symbols_of(const Expr* e);  // each once
const std::string& symbol_name(const Expr* symbol);
bool is_literal(const Expr* e);  // a number or a truth value
// The parts in the order in which sympy keeps them, which is not that in which it prints them.
std::vector<const Expr*> ordered_parts(const Expr* e);
Value literal_value(const Expr* e);

// None when a symbol is missing, or a function.
Value evaluate_with(const Expr* e, const std::unordered_map<const Expr*, Value>& symbols);

}  // namespace calque
