#include "export/capture/expression_values.h"

#include <algorithm>
#include <array>

#include "calque/graph/function.h"
#include "calque/sym/shape_env.h"
#include "trace/expression_nodes.h"

namespace calque {
namespace {

void collect_symbols(const Expr* e, std::vector<const Expr*>& out) {
  if (e->kind() == ExprKind::symbol) {
    if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
    return;
  }
  for (const Expr* part : e->args()) collect_symbols(part, out);
}

// sympy's order of classes; functions come last, by name.
constexpr std::array ranks = {ExprKind::integer, ExprKind::float_number, ExprKind::symbol,
                              ExprKind::pow,     ExprKind::mul,          ExprKind::add};
size_t rank(const Expr* e) { return static_cast<size_t>(std::ranges::find(ranks, e->kind()) - ranks.begin()); }

int compare(const Expr* a, const Expr* b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a == b) return 0;
  if (const int c = sign(rank(a), rank(b))) return c;
  if (a->is_integer()) return sign(a->integer(), b->integer());
  if (a->kind() == ExprKind::symbol) return symbol_name(a).compare(symbol_name(b));
  if (rank(a) == ranks.size())
    if (const int c = std::string_view(sympy_name(a)).compare(sympy_name(b))) return c;
  const std::vector<const Expr*> x = ordered_parts(a), y = ordered_parts(b);
  if (const int c = sign(x.size(), y.size())) return c;
  for (size_t i = 0; i < x.size(); ++i)
    if (const int c = compare(x[i], y[i])) return c;
  return 0;
}

}  // namespace

std::vector<const Expr*> ordered_parts(const Expr* e) {
  std::vector<const Expr*> parts(e->args().begin(), e->args().end());
  if (e->kind() == ExprKind::add || e->kind() == ExprKind::mul)
    std::stable_sort(parts.begin(), parts.end(), [](const Expr* a, const Expr* b) { return compare(a, b) < 0; });
  return parts;
}

const std::string& symbol_name(const Expr* symbol) { return symbol->env()->symbols()[symbol->symbol_index()].name; }

std::vector<const Expr*> symbols_of(const Expr* e) {
  std::vector<const Expr*> out;
  collect_symbols(e, out);
  return out;
}

bool is_literal(const Expr* e) {
  return e->is_integer() || e->kind() == ExprKind::float_number || e->kind() == ExprKind::true_value ||
         e->kind() == ExprKind::false_value;
}

Value literal_value(const Expr* e) {
  if (e->is_integer()) return e->integer();
  if (e->kind() == ExprKind::float_number) return e->float_value();
  return e->kind() == ExprKind::true_value;
}

Value evaluate_with(const Expr* e, const std::unordered_map<const Expr*, Value>& symbols) {
  if (const auto it = symbols.find(e); it != symbols.end()) return it->second;
  if (is_literal(e)) return literal_value(e);
  if (e->kind() == ExprKind::symbol) return {};
  Values parts;
  for (const Expr* part : e->args()) {
    parts.push_back(evaluate_with(part, symbols));
    if (parts.back().is_none()) return {};
  }
  if (e->kind() == ExprKind::pow && parts.size() == 1) parts.emplace_back(e->exponent());
  const char* name = python_function(e);
  if (!name) return {};
  const FunctionRef f = get_function(name);
  if (parts.size() <= 2 || e->kind() == ExprKind::where || e->kind() == ExprKind::piecewise) return (*f)(parts);
  Value left = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) left = (*f)({left, parts[i]});
  return left;
}

}  // namespace calque
