#include "sym/order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdio>
#include <cstdlib>

#include "calque/sym/shape_env.h"
#include "sym/expr_pool.h"

namespace calque {

namespace {

std::strong_ordering compare_keys(const Expr* a, const Expr* b);

// sympy's class_key: numbers, symbols, arithmetic, functions, everything else; the name settles the rest.
int class_rank(ExprKind kind) {
  switch (kind) {
    case ExprKind::integer:
    case ExprKind::float_number: return 1;
    case ExprKind::symbol: return 2;
    case ExprKind::mul: return 30;
    case ExprKind::add: return 31;
    case ExprKind::pow: return 32;
    case ExprKind::floor_div:
    case ExprKind::clean_div:
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
    case ExprKind::piecewise:
    case ExprKind::dense_indicator: return 40;
    case ExprKind::max:
    case ExprKind::min:
    case ExprKind::eq:
    case ExprKind::ne:
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge:
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::logical_not:
    case ExprKind::true_value:
    case ExprKind::false_value: break;
  }
  return 50;
}

double number_value(const Expr* e) { return e->is_integer() ? static_cast<double>(e->integer()) : e->float_value(); }

bool is_number(const Expr* e) { return e->is_integer() || e->kind() == ExprKind::float_number; }

std::strong_ordering compare_numbers(const Expr* a, const Expr* b) {
  if (a->is_integer() && b->is_integer()) return a->integer() <=> b->integer();
  const double x = number_value(a), y = number_value(b);
  if (x < y) return std::strong_ordering::less;
  return x > y ? std::strong_ordering::greater : std::strong_ordering::equal;
}

const std::string& symbol_name(const Expr* e) { return e->env()->symbols()[e->symbol_index()].name; }

// What sympy's sort_key takes apart: coefficient * base ** exponent.
struct Parts {
  int64_t coefficient;
  const Expr* base;
  int64_t exponent;
};

Parts parts_of(const Expr* e) {
  Parts out{1, e, 1};
  if (e->kind() == ExprKind::mul) {
    out.coefficient = e->coefficient();
    out.base = e->without_coefficient();
  }
  if (out.base->kind() == ExprKind::pow) {
    out.exponent = out.base->exponent();
    out.base = out.base->arg(0);
  }
  return out;
}

std::strong_ordering compare_keys(const Expr* a, const Expr* b) {
  if (a == b) return std::strong_ordering::equal;
  const Parts x = parts_of(a), y = parts_of(b);
  if (x.base != y.base) {
    if (const auto c = class_rank(x.base->kind()) <=> class_rank(y.base->kind()); c != 0) return c;
    if (is_number(x.base)) return compare_numbers(x.base, y.base);
    if (x.base->kind() == ExprKind::symbol) {
      if (const auto c = symbol_name(x.base) <=> symbol_name(y.base); c != 0) return c;
    } else {
      if (const auto c = std::string_view(sympy_name(x.base)) <=> sympy_name(y.base); c != 0) return c;
      const std::vector<const Expr*> left = printing_order(x.base), right = printing_order(y.base);
      if (const auto c = left.size() <=> right.size(); c != 0) return c;
      for (size_t i = 0; i < left.size(); ++i)
        if (const auto c = compare_keys(left[i], right[i]); c != 0) return c;
    }
  }
  if (const auto c = x.exponent <=> y.exponent; c != 0) return c;
  return x.coefficient <=> y.coefficient;
}

bool key_less(const Expr* a, const Expr* b) { return compare_keys(a, b) < 0; }

// A float number in a product counts as its coefficient, not as one of its factors.
Factors generators(const Expr* term) {
  Factors out = factors_of(split_term(term).rest);
  erase_where(out, [](const Factor& f) { return f.base->kind() == ExprKind::float_number; });
  return out;
}

std::vector<const Expr*> ordered_terms(const Expr* sum) {
  std::vector<const Expr*> terms(sum->args().begin(), sum->args().end());
  // "1 - 2*s0" rather than "-2*s0 + 1", but only for a number and a product of a number and one factor.
  if (terms.size() == 2) {
    const bool number_first = is_number(terms[0]);
    const Expr* number = number_first ? terms[0] : terms[1];
    const Expr* other = number_first ? terms[1] : terms[0];
    if (is_number(number) && number_value(number) > 0 && other->kind() == ExprKind::mul && other->args().size() == 2 &&
        is_number(other->arg(0)) && number_value(other->arg(0)) < 0)
      return {number, other};
  }
  std::vector<const Expr*> bases;
  for (const Expr* t : terms)
    for (const Factor& f : generators(t)) bases.push_back(f.base);
  std::ranges::sort(bases, {}, &Expr::id);
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  std::ranges::stable_sort(bases, key_less);

  struct Keyed {
    const Expr* term;
    std::vector<int64_t> exponents;
  };
  std::vector<Keyed> keyed;
  for (const Expr* t : terms) {
    Keyed k{t, std::vector<int64_t>(bases.size(), 0)};
    for (const Factor& f : generators(t))
      k.exponents[static_cast<size_t>(std::ranges::find(bases, f.base) - bases.begin())] = f.exponent;
    keyed.push_back(std::move(k));
  }
  std::ranges::stable_sort(keyed, [](const Keyed& a, const Keyed& b) { return a.exponents > b.exponents; });
  terms.clear();
  for (const Keyed& k : keyed) terms.push_back(k.term);
  return terms;
}

}  // namespace

std::vector<const Expr*> printing_order(const Expr* e) {
  const ExprKind kind = e->kind();
  if (kind == ExprKind::add) return ordered_terms(e);
  std::vector<const Expr*> args(e->args().begin(), e->args().end());
  if (kind == ExprKind::mul) std::ranges::stable_sort(args, key_less);
  if (kind == ExprKind::max || kind == ExprKind::min || kind == ExprKind::logical_and || kind == ExprKind::logical_or)
    std::ranges::stable_sort(args, [](const Expr* a, const Expr* b) {
      return a->tree_size() != b->tree_size() ? a->tree_size() < b->tree_size() : key_less(a, b);
    });
  return args;
}

namespace {

// The place of a class in the order that sympy keeps arguments in; classes it does not list come last, by name.
constexpr std::array listed = {ExprKind::float_number, ExprKind::symbol,   ExprKind::pow, ExprKind::mul,
                               ExprKind::add,          ExprKind::absolute, ExprKind::eq,  ExprKind::ne,
                               ExprKind::gt,           ExprKind::lt,       ExprKind::ge,  ExprKind::le};
constexpr size_t integer_ranks = 4;  // 0, 1, -1 and the others have classes of their own
constexpr size_t unlisted_rank = integer_ranks + listed.size();

size_t stored_rank(const Expr* e) {
  if (e->is_integer()) return e->integer() == 0 ? 0 : e->integer() == 1 ? 1 : e->integer() == -1 ? 2 : 3;
  return integer_ranks + static_cast<size_t>(std::ranges::find(listed, e->kind()) - listed.begin());
}

// The more sympy assumes of a symbol, the later it comes.
int assumption_rank(const Expr* symbol) {
  const Symbol& s = symbol->env()->symbols()[symbol->symbol_index()];
  if (s.is_float) return symbol->has_unbacked() ? 0 : 1;
  return s.positive ? 3 : 2;
}

std::strong_ordering compare_stored(const Expr* a, const Expr* b) {
  if (a == b) return std::strong_ordering::equal;
  const size_t rank = stored_rank(a);
  if (const auto c = rank <=> stored_rank(b); c != 0) return c;
  if (rank == unlisted_rank)
    if (const auto c = std::string_view(sympy_name(a)) <=> sympy_name(b); c != 0) return c;
  if (is_number(a)) return compare_numbers(a, b);
  if (a->kind() == ExprKind::symbol) {
    if (const auto c = assumption_rank(a) <=> assumption_rank(b); c != 0) return c;
    return symbol_name(a) <=> symbol_name(b);
  }
  const std::vector<const Expr*> left = stored_order(a), right = stored_order(b);
  if (const auto c = left.size() <=> right.size(); c != 0) return c;
  for (size_t i = 0; i < left.size(); ++i)
    if (const auto c = compare_stored(left[i], right[i]); c != 0) return c;
  return std::strong_ordering::equal;
}

}  // namespace

std::vector<const Expr*> stored_order(const Expr* e) {
  if (e->kind() != ExprKind::add && e->kind() != ExprKind::mul) return printing_order(e);
  std::vector<const Expr*> args(e->args().begin(), e->args().end());
  std::ranges::stable_sort(args, [](const Expr* a, const Expr* b) { return compare_stored(a, b) < 0; });
  return args;
}

std::vector<const Expr*> sorted_by_key(std::span<const Expr* const> args) {
  std::vector<const Expr*> out(args.begin(), args.end());
  std::ranges::stable_sort(out, key_less);
  return out;
}

std::string float_text(double value, int digits, bool strip_zeros) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-oo" : "oo";
  if (value == 0) return "0.0";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, std::fabs(value));
  const std::string text = buffer;
  const size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  std::string number = text.substr(0, 1) + text.substr(2, mark - 2);
  std::string out = value < 0 ? "-" : "";
  const bool fixed = -5 < exponent && exponent < digits;
  size_t point = 1;
  if (fixed) {
    if (exponent < 0)
      number.insert(0, static_cast<size_t>(-exponent), '0');
    else
      point = static_cast<size_t>(exponent) + 1;
  }
  number.insert(point, ".");
  if (strip_zeros)
    while (number.back() == '0') number.pop_back();
  if (number.back() == '.') number += "0";
  out += number;
  if (!fixed) out += std::string("e") + (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
  return out;
}

}  // namespace calque
