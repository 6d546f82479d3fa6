// Text in the form of sympy's str(), with PyTorch's own functions as they print themselves.
#include <iterator>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "sym/order.h"
#include "sym/precedence.h"

namespace calque {

namespace {

bool is_negative_number(const Expr* e) {
  return e->is_integer() ? e->integer() < 0 : e->kind() == ExprKind::float_number && e->float_value() < 0;
}

}  // namespace

int precedence(const Expr* e) {
  switch (e->kind()) {
    case ExprKind::integer:
    case ExprKind::float_number: return is_negative_number(e) ? precedence_add : precedence_atom;
    case ExprKind::add: return precedence_add;
    case ExprKind::mul: return is_negative_number(e->arg(0)) ? precedence_add : precedence_mul;
    case ExprKind::pow: return precedence_pow;
    case ExprKind::floor_div:
    case ExprKind::clean_div:
    case ExprKind::mod:
    case ExprKind::python_mod:
    case ExprKind::where:
    case ExprKind::int_true_div:
    case ExprKind::float_true_div: return precedence_function;
    case ExprKind::pow_by_natural: return precedence_mul;
    case ExprKind::float_pow: return precedence_pow;
    case ExprKind::to_float:
    case ExprKind::floor_to_int:
    case ExprKind::ceil_to_int:
    case ExprKind::trunc_to_int:
    case ExprKind::round_to_int:
    case ExprKind::round_decimal:
    case ExprKind::trunc_to_float:
    case ExprKind::floor:
    case ExprKind::absolute:
    case ExprKind::opaque_unary:
    case ExprKind::dense_indicator: return precedence_call;
    case ExprKind::piecewise: return precedence_call;
    case ExprKind::bitwise_and: return precedence_in_and;
    case ExprKind::bitwise_or: return precedence_in_or;
    case ExprKind::bitwise_xor: return precedence_in_xor;
    case ExprKind::eq:
    case ExprKind::ne: return precedence_mul;
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge: return precedence_relation;
    case ExprKind::logical_and: return precedence_and;
    case ExprKind::logical_or: return precedence_or;
    case ExprKind::logical_not: return precedence_not;
    case ExprKind::symbol:
    case ExprKind::max:
    case ExprKind::min:
    case ExprKind::true_value:
    case ExprKind::false_value: return precedence_atom;
  }
  throw InternalError("an expression of unknown kind");
}

namespace {

std::string print(const Expr* e, bool top);

std::string guarded(const Expr* e, int level) {
  const std::string text = print(e, false);
  return precedence(e) <= level ? "(" + text + ")" : text;
}

std::string joined(const std::vector<const Expr*>& args, const char* separator, int level) {
  return join(args, separator, [&](const Expr* a) { return level < 0 ? print(a, false) : guarded(a, level); });
}

std::string print_add(const Expr* e) {
  std::string out;
  for (const Expr* term : printing_order(e)) {
    std::string text = print(term, false);
    const bool negative = text[0] == '-';
    if (negative) text.erase(0, 1);
    if (precedence(term) < precedence_add) text = "(" + text + ")";
    if (out.empty())
      out = (negative ? "-" : "") + text;
    else
      out += (negative ? " - " : " + ") + text;
  }
  return out;
}

std::string print_mul(const Expr* e) {
  std::vector<const Expr*> args = printing_order(e);
  if (!is_negative_number(args[0])) return joined(args, "*", precedence_mul);
  const std::string number = print(args[0], false).substr(1);
  args.erase(args.begin());
  return "-" + (number == "1" ? "" : number + "*") + joined(args, "*", precedence_add);
}

std::string print(const Expr* e, bool top) {
  switch (e->kind()) {
    case ExprKind::integer: return std::to_string(e->integer());
    case ExprKind::float_number: return float_text(e->float_value(), 15, !top);
    case ExprKind::symbol: return e->env()->symbols()[e->symbol_index()].name;
    case ExprKind::true_value: return "True";
    case ExprKind::false_value: return "False";
    case ExprKind::add: return print_add(e);
    case ExprKind::mul: return print_mul(e);
    case ExprKind::pow: return guarded(e->arg(0), precedence_pow) + "**" + guarded(e->arg(1), precedence_pow);
    case ExprKind::floor_div:
    case ExprKind::clean_div:
      return "(" + guarded(e->arg(0), precedence_atom - 1) + "//" + guarded(e->arg(1), precedence_atom - 1) + ")";
    case ExprKind::eq:
    case ExprKind::ne:
      return std::string(e->kind() == ExprKind::eq ? "Eq(" : "Ne(") + print(e->arg(0), false) + ", " +
             print(e->arg(1), false) + ")";
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge: {
      const char* sign = e->kind() == ExprKind::lt   ? " < "
                         : e->kind() == ExprKind::le ? " <= "
                         : e->kind() == ExprKind::gt ? " > "
                                                     : " >= ";
      return guarded(e->arg(0), precedence_relation) + sign + guarded(e->arg(1), precedence_relation);
    }
    case ExprKind::logical_and: return joined(printing_order(e), " & ", precedence_in_and);
    case ExprKind::logical_or: return joined(printing_order(e), " | ", precedence_in_or);
    case ExprKind::piecewise:
      return "Piecewise((" + print(e->arg(1), false) + ", " + print(e->arg(0), false) + "), (" + print(e->arg(2), false) +
             ", True))";
    case ExprKind::logical_not: return "~" + guarded(e->arg(0), precedence_not);
    case ExprKind::max:
    case ExprKind::min: return std::string(sympy_name(e)) + "(" + joined(sorted_by_key(e->args()), ", ", -1) + ")";
    case ExprKind::mod:
    case ExprKind::python_mod:
    case ExprKind::where:
    case ExprKind::pow_by_natural:
    case ExprKind::to_float:
    case ExprKind::int_true_div:
    case ExprKind::float_true_div:
    case ExprKind::float_pow:
    case ExprKind::floor_to_int:
    case ExprKind::ceil_to_int:
    case ExprKind::trunc_to_int:
    case ExprKind::round_to_int:
    case ExprKind::round_decimal:
    case ExprKind::trunc_to_float:
    case ExprKind::floor:
    case ExprKind::absolute:
    case ExprKind::opaque_unary:
    case ExprKind::bitwise_and:
    case ExprKind::bitwise_or:
    case ExprKind::bitwise_xor:
    case ExprKind::dense_indicator: break;
  }
  return std::string(sympy_name(e)) + "(" + joined(printing_order(e), ", ", -1) + ")";
}

}  // namespace

namespace {

struct OpaqueNames {
  const char* plain;
  const char* sympy;
};

constexpr OpaqueNames opaque_names[] = {
    {"sqrt", "OpaqueUnaryFn_sqrt"},   {"cos", "OpaqueUnaryFn_cos"},   {"cosh", "OpaqueUnaryFn_cosh"},
    {"sin", "OpaqueUnaryFn_sin"},     {"sinh", "OpaqueUnaryFn_sinh"}, {"tan", "OpaqueUnaryFn_tan"},
    {"tanh", "OpaqueUnaryFn_tanh"},   {"asin", "OpaqueUnaryFn_asin"}, {"acos", "OpaqueUnaryFn_acos"},
    {"atan", "OpaqueUnaryFn_atan"},   {"exp", "OpaqueUnaryFn_exp"},   {"log", "OpaqueUnaryFn_log"},
    {"asinh", "OpaqueUnaryFn_asinh"}, {"log2", "OpaqueUnaryFn_log2"},
};
static_assert(std::size(opaque_names) == opaque_function_count);

}  // namespace

const char* opaque_name(OpaqueFunction function) { return opaque_names[static_cast<size_t>(function)].plain; }

const char* sympy_name(const Expr* e) {
  switch (e->kind()) {
    case ExprKind::integer: return "Integer";
    case ExprKind::float_number: return "Float";
    case ExprKind::symbol: return "Symbol";
    case ExprKind::add: return "Add";
    case ExprKind::mul: return "Mul";
    case ExprKind::pow: return "Pow";
    case ExprKind::floor_div: return "FloorDiv";
    case ExprKind::clean_div: return "CleanDiv";
    case ExprKind::mod: return "Mod";
    case ExprKind::python_mod: return "PythonMod";
    case ExprKind::max: return "Max";
    case ExprKind::min: return "Min";
    case ExprKind::where: return "Where";
    case ExprKind::pow_by_natural: return "PowByNatural";
    case ExprKind::to_float: return "ToFloat";
    case ExprKind::int_true_div: return "IntTrueDiv";
    case ExprKind::float_true_div: return "FloatTrueDiv";
    case ExprKind::float_pow: return "FloatPow";
    case ExprKind::floor_to_int: return "FloorToInt";
    case ExprKind::ceil_to_int: return "CeilToInt";
    case ExprKind::trunc_to_int: return "TruncToInt";
    case ExprKind::round_to_int: return "RoundToInt";
    case ExprKind::round_decimal: return "RoundDecimal";
    case ExprKind::trunc_to_float: return "TruncToFloat";
    case ExprKind::floor: return "floor";
    case ExprKind::absolute: return "Abs";
    case ExprKind::opaque_unary: return opaque_names[static_cast<size_t>(e->opaque_function())].sympy;
    case ExprKind::bitwise_and: return "BitwiseFn_bitwise_and";
    case ExprKind::bitwise_or: return "BitwiseFn_bitwise_or";
    case ExprKind::bitwise_xor: return "BitwiseFn_bitwise_xor";
    case ExprKind::piecewise: return "Piecewise";
    case ExprKind::dense_indicator: return "IsNonOverlappingAndDenseIndicator";
    case ExprKind::eq: return "Equality";
    case ExprKind::ne: return "Unequality";
    case ExprKind::lt: return "StrictLessThan";
    case ExprKind::le: return "LessThan";
    case ExprKind::gt: return "StrictGreaterThan";
    case ExprKind::ge: return "GreaterThan";
    case ExprKind::logical_and: return "And";
    case ExprKind::logical_or: return "Or";
    case ExprKind::logical_not: return "Not";
    case ExprKind::true_value: return "true";
    case ExprKind::false_value: return "false";
  }
  throw InternalError("an expression of unknown kind");
}

std::string Expr::str() const { return print(this, true); }

}  // namespace calque
