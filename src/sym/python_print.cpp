#include "sym/python_print.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "base/join.h"
#include "calque/base/error.h"
#include "sym/order.h"
#include "sym/precedence.h"

namespace calque {

namespace {

// As Python's repr(): the shortest text that reads back, fixed point unless the exponent is extreme.
std::string float_repr(double v) {
  if (std::isnan(v)) return "math.nan";
  if (std::isinf(v)) return v < 0 ? "-math.inf" : "math.inf";
  char buffer[64];
  const double size = std::fabs(v);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, v, fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(buffer, end);
  if (fixed && out.find('.') == std::string::npos) out += ".0";
  return out;
}

class Printer {
 public:
  explicit Printer(const SymbolText& symbol_text) : symbol_text_(symbol_text) {}

  std::string print(const Expr* e) const {
    switch (e->kind()) {
      case ExprKind::integer: return std::to_string(e->integer());
      case ExprKind::float_number: return float_repr(e->float_value());
      case ExprKind::symbol: return symbol_text_(e->symbol_index());
      case ExprKind::true_value: return "True";
      case ExprKind::false_value: return "False";
      case ExprKind::add: return joined(stored_order(e), " + ", precedence(e));
      case ExprKind::mul: return joined(stored_order(e), "*", precedence(e));
      case ExprKind::pow:
        return joined(std::vector<const Expr*>(static_cast<size_t>(e->exponent()), e->arg(0)), "*", precedence_mul);
      case ExprKind::floor_div:
      case ExprKind::clean_div: return operands(e, " // ");
      case ExprKind::mod:
      case ExprKind::python_mod: return operands(e, " % ");
      case ExprKind::int_true_div: return operands(e, " / ");
      case ExprKind::float_true_div: return "(" + operands(e, " / ") + ")";
      case ExprKind::pow_by_natural:
      case ExprKind::float_pow: return joined({e->arg(0), e->arg(1)}, " ** ", precedence_pow);
      case ExprKind::max: return call("max", e);
      case ExprKind::min: return call("min", e);
      case ExprKind::where: return call("Where", e);
      case ExprKind::piecewise:
        return "(" + print(e->arg(1)) + " if " + print(e->arg(0)) + " else " + print(e->arg(2)) + ")";
      case ExprKind::to_float: return call("torch.sym_float", e);
      case ExprKind::floor_to_int:
      case ExprKind::floor: return call("math.floor", e);
      case ExprKind::ceil_to_int: return call("math.ceil", e);
      case ExprKind::trunc_to_int: return call("math.trunc", e);
      case ExprKind::round_to_int:
      case ExprKind::round_decimal: return call("round", e);
      case ExprKind::trunc_to_float: return call("TruncToFloat", e);
      case ExprKind::absolute: return call("abs", e);
      case ExprKind::opaque_unary: {
        const bool root = e->opaque_function() == OpaqueFunction::sqrt;
        return call((root ? "torch._sym_" : "math.") + std::string(opaque_name(e->opaque_function())), e);
      }
      case ExprKind::bitwise_and: return joined({e->arg(0), e->arg(1)}, " & ", precedence_in_and);
      case ExprKind::bitwise_or: return joined({e->arg(0), e->arg(1)}, " | ", precedence_in_or);
      case ExprKind::bitwise_xor: return joined({e->arg(0), e->arg(1)}, " ^ ", precedence_in_xor);
      case ExprKind::dense_indicator: return call(sympy_name(e), e);
      case ExprKind::eq: return relation(e, " == ");
      case ExprKind::ne: return relation(e, " != ");
      case ExprKind::lt: return relation(e, " < ");
      case ExprKind::le: return relation(e, " <= ");
      case ExprKind::gt: return relation(e, " > ");
      case ExprKind::ge: return relation(e, " >= ");
      case ExprKind::logical_and: return joined(stored_order(e), " and ", precedence_and);
      case ExprKind::logical_or: return joined(stored_order(e), " or ", precedence_or);
      case ExprKind::logical_not: return "not (" + print(e->arg(0)) + ")";
    }
    throw InternalError("an expression of unknown kind");
  }

 private:
  std::string guarded(const Expr* e, int level) const {
    const std::string text = print(e);
    return precedence(e) <= level ? "(" + text + ")" : text;
  }
  std::string joined(const std::vector<const Expr*>& args, const char* separator, int level) const {
    std::string out = join(args, separator, [&](const Expr* a) { return guarded(a, level); });
    return out;
  }
  std::string operands(const Expr* e, const char* sign) const {
    return joined({e->arg(0), e->arg(1)}, sign, precedence_atom - 1);
  }
  std::string relation(const Expr* e, const char* sign) const { return joined({e->arg(0), e->arg(1)}, sign, precedence(e)); }
  std::string call(const std::string& name, const Expr* e) const {
    const std::string out = join(stored_order(e), ", ", [&](const Expr* a) { return print(a); });
    return name + "(" + out + ")";
  }

  const SymbolText& symbol_text_;
};

}  // namespace

std::string python_text(const Expr* e, const SymbolText& symbol_text) { return Printer(symbol_text).print(e); }

}  // namespace calque
