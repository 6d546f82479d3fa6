// sympy's srepr text, the form in which .pt2 files keep symbolic values: written from and read into a ShapeEnv.
// Reading builds Calque's normal form; it does not evaluate Python. Text that is not understood gives a UserError
// (bad_file) with the position.
#pragma once

#include <string>
#include <string_view>

#include "calque/sym/sym_int.h"

namespace calque {

class ShapeEnv;

class Expr;

// With what the environment has learnt since; of an expression as it was made.
std::string srepr(SymInt value);
std::string srepr(SymBool value);
std::string srepr(SymFloat value);
std::string srepr(const Expr* expr);

// Symbols are looked up by name; one that the environment does not have is declared: unbacked if its name starts with
// 'u', else without a hint in the range [0, inf) if sympy calls it positive or nonnegative, unbounded otherwise.
SymInt parse_srepr(ShapeEnv& env, std::string_view text);
SymBool parse_srepr_bool(ShapeEnv& env, std::string_view text);
SymFloat parse_srepr_float(ShapeEnv& env, std::string_view text);

}  // namespace calque
