// Expanding products of sums, and what needs it: exact division, // and %.
#include <algorithm>
#include <numeric>

#include "calque/base/error.h"
#include "sym/expr_pool.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr size_t most_expanded_terms = 2048;
constexpr size_t most_division_steps = 64;

int64_t divisor_magnitude(int64_t v) {
  if (v == INT64_MIN) return 1;  // its magnitude does not fit; 1 is always a divisor
  return v < 0 ? -v : v;
}

int64_t content(const Terms& terms) {
  int64_t g = 0;
  for (const Term& t : terms) g = std::gcd(g, divisor_magnitude(t.coefficient));
  return g;
}

int64_t exponent_of(const Factors& factors, const Expr* base) {
  for (const Factor& f : factors)
    if (f.base == base) return f.exponent;
  return 0;
}

// Lexicographic order of monomials: the older a base, the more it weighs. Compatible with multiplication.
bool monomial_less(const Expr* a, const Expr* b) {
  if (a == b) return false;
  const Factors x = factors_of(a), y = factors_of(b);
  for (size_t i = 0;; ++i) {
    if (i == y.size()) return false;
    if (i == x.size()) return true;
    if (x[i].base != y[i].base) return x[i].base->id() > y[i].base->id();
    if (x[i].exponent != y[i].exponent) return x[i].exponent < y[i].exponent;
  }
}

const Term& leading_term(const Terms& terms) {
  return *std::max_element(terms.begin(), terms.end(),
                           [](const Term& a, const Term& b) { return monomial_less(a.rest, b.rest); });
}

// a / b where b divides a, term by term.
bool divide_term(const Term& a, const Term& b, int64_t& coefficient, Factors& factors) {
  if (b.coefficient == 0 || floor_remainder(a.coefficient, b.coefficient) != 0) return false;
  if (a.coefficient == INT64_MIN && b.coefficient == -1) return false;
  coefficient = a.coefficient / b.coefficient;
  factors = factors_of(a.rest);
  for (const Factor& f : factors_of(b.rest)) {
    const auto at = std::ranges::find_if(factors, [&](const Factor& x) { return x.base == f.base; });
    if (at == factors.end() || at->exponent < f.exponent) return false;
    at->exponent -= f.exponent;
    if (at->exponent == 0) factors.erase(at);
  }
  return true;
}

}  // namespace

const Expr* ExprPool::expand(const Expr* e) {
  Expr::Cache& cache = e->cache();
  if (cache.expanded == nullptr) {
    const Expr* expanded = e;
    try {
      expanded = expand_uncached(e);
    } catch (const UserError&) {
      // The coefficients would leave 64 bits: such a product stays as it is.
    }
    cache.expanded = expanded;
    expanded->cache().expanded = expanded;
  }
  return cache.expanded;
}

const Expr* ExprPool::expand_uncached(const Expr* e) {
  if (e->args().empty()) return e;
  if (e->kind() == ExprKind::mul || e->kind() == ExprKind::pow) {
    const Term whole = split_term(e);
    const Factors factors_of_whole = factors_of(whole.rest);
    if (std::ranges::all_of(factors_of_whole, [](const Factor& f) { return f.base->kind() == ExprKind::symbol; })) return e;
    Terms out{{whole.coefficient, nullptr}};
    Factors kept;  // what would grow too large
    for (const Factor& f : factors_of_whole) {
      const Terms part = terms_of(expand(f.base));
      if (part.size() == 1 || f.exponent > 32) {
        kept.push_back({expand(f.base), f.exponent});
        continue;
      }
      for (int64_t n = 0; n < f.exponent; ++n) {
        if (out.size() * part.size() > most_expanded_terms) {
          kept.push_back({expand(f.base), f.exponent - n});
          break;
        }
        Terms next;
        next.reserve(out.size() * part.size());
        for (const Term& x : out) {
          for (const Term& y : part) {
            Factors factors = factors_of(x.rest);
            const Factors more = factors_of(y.rest);
            append(factors, more);
            const Expr* made = product(checked_mul(x.coefficient, y.coefficient), std::move(factors));
            for (const Term& t : terms_of(made)) next.push_back(t);
          }
        }
        out = terms_of(sum(std::move(next)));
      }
    }
    const Expr* by = integer(1);
    for (const Factor& f : kept) by = mul(by, pow(f.base, f.exponent));
    Terms result;
    for (const Term& t : out) {
      const Expr* made = mul(scale(t.coefficient, t.rest == nullptr ? integer(1) : t.rest), by);
      for (const Term& part : terms_of(made)) result.push_back(part);
    }
    return sum(std::move(result));
  }
  ExprArgs args;
  args.reserve(e->args().size());
  bool changed = false;
  for (const Expr* a : e->args()) {
    args.push_back(expand(a));
    changed |= args.back() != a;
  }
  return changed ? rebuild(e, all(args)) : e;
}

const Expr* ExprPool::exact_quotient(const Expr* a, const Expr* b) {
  if (a->is_float() || b->is_float()) return nullptr;
  try {
    return exact_quotient_unchecked(a, b);
  } catch (const UserError&) {  // coefficients beyond 64 bits
    return nullptr;
  }
}

const Expr* ExprPool::exact_quotient_unchecked(const Expr* a, const Expr* b) {
  const Expr* remainder = expand(a);
  const Expr* divisor = expand(b);
  const Terms divisor_terms = terms_of(divisor);
  if (divisor_terms.size() > most_division_steps) return nullptr;
  const Term lead = leading_term(divisor_terms);
  const Expr* quotient = integer(0);
  for (size_t step = 0; step < most_division_steps; ++step) {
    if (remainder->is_integer() && remainder->integer() == 0) return quotient;
    int64_t coefficient;
    Factors factors;
    if (!divide_term(leading_term(terms_of(remainder)), lead, coefficient, factors)) return nullptr;
    const Expr* part = product(coefficient, std::move(factors));
    quotient = add(quotient, part);
    remainder = sub(remainder, expand(mul(part, divisor)));
  }
  return nullptr;
}

// Divides both sides by what all their terms share: a number and whole factors. Null where nothing is shared.
const Expr* ExprPool::cancel_common(ExprKind kind, const Expr* a, const Expr* b) {
  const Terms top = terms_of(a);
  const Terms bottom = terms_of(b);
  const int64_t number = std::gcd(content(top), content(bottom));
  Factors shared;
  // A sum as divisor can only be shared as a whole.
  const Factors candidates = b->kind() == ExprKind::add ? Factors{{b, 1}} : factors_of(bottom[0].rest);
  for (const Factor& f : candidates) {
    int64_t exponent = f.exponent;
    for (const Term& t : top) exponent = std::min(exponent, exponent_of(factors_of(t.rest), f.base));
    if (exponent > 0) shared.push_back({f.base, exponent});
  }
  if (number <= 1 && shared.empty()) return nullptr;

  const auto reduced = [&](const Terms& terms) {
    Terms out;
    for (const Term& t : terms) {
      Factors factors = factors_of(t.rest);
      for (const Factor& s : shared) factors.push_back({s.base, -s.exponent});
      for (const Term& part : terms_of(product(t.coefficient / std::max<int64_t>(number, 1), std::move(factors))))
        out.push_back(part);
    }
    return sum(std::move(out));
  };
  const bool sum_is_shared = b->kind() == ExprKind::add && !shared.empty();
  return divide(kind, reduced(top), sum_is_shared ? integer(1) : reduced(bottom));
}

// Python's // and % of floats: nothing is simplified but numbers.
const Expr* ExprPool::float_divide(ExprKind kind, const Expr* a, const Expr* b) {
  const auto number = [](const Expr* e) { return e->is_integer() || e->kind() == ExprKind::float_number; };
  if (!number(a) || !number(b)) return make(kind, {a, b});
  const auto value = [](const Expr* e) { return e->is_integer() ? static_cast<double>(e->integer()) : e->float_value(); };
  const bool divides = kind == ExprKind::floor_div || kind == ExprKind::clean_div;
  return float_number(divides ? float_floor_quotient(value(a), value(b)) : float_floor_remainder(value(a), value(b)));
}

const Expr* ExprPool::divide(ExprKind kind, const Expr* a, const Expr* b) {
  if (a->is_float() || b->is_float()) return float_divide(kind, a, b);
  if (b->is_integer()) {
    if (b->integer() == 0) return make(kind, {a, b});
    if (a->is_integer()) return integer(floor_quotient(a->integer(), b->integer()));
    if (b->integer() == 1) return a;
    if (b->integer() == -1) return scale(-1, a);
  }
  if (a->is_integer() && a->integer() == 0) return a;
  if (a == b) return integer(1);

  // floor(floor(x / y) / z) = floor(x / (y * z)) for z > 0; z is not zero, or the division would be an error.
  if ((a->kind() == ExprKind::floor_div || a->kind() == ExprKind::clean_div) && range(b).lower >= 0)
    return divide(kind == a->kind() ? kind : ExprKind::floor_div, a->arg(0), mul(a->arg(1), b));

  if (b->is_integer()) {  // the terms that the divisor divides leave the division
    Terms inside, outside;
    for (const Term& t : terms_of(a)) {
      if (floor_remainder(t.coefficient, b->integer()) == 0)
        outside.push_back({t.coefficient / b->integer(), t.rest});
      else
        inside.push_back(t);
    }
    if (!outside.empty()) return add(divide(kind, sum(std::move(inside)), b), sum(std::move(outside)));
  }
  if (const Expr* simpler = cancel_common(kind, a, b)) return simpler;
  if (b->kind() == ExprKind::add)
    if (const Expr* quotient = exact_quotient(a, b)) return quotient;
  return make(kind, {a, b});
}

const Expr* ExprPool::mod(const Expr* a, const Expr* b) {
  const bool is_float = a->is_float() || b->is_float();
  const bool not_negative =
      is_float ? is_not_negative_float(a) && is_not_negative_float(b) : range(a).lower >= 0 && range(b).lower >= 0;
  return mod(not_negative ? ExprKind::mod : ExprKind::python_mod, a, b);
}

const Expr* ExprPool::mod(ExprKind kind, const Expr* a, const Expr* b) {
  if (a->is_float() || b->is_float()) return float_divide(kind, a, b);
  if (b->is_integer()) {
    const int64_t d = b->integer();
    if (d == 0) return make(kind, {a, b});
    if (d == 1 || d == -1) return integer(0);
    if (a->is_integer()) return integer(floor_remainder(a->integer(), d));
    // All but the number divides: what the number leaves.
    int64_t number = 0;
    bool divides = true;
    for (const Term& t : terms_of(a)) {
      if (t.rest == nullptr)
        number = t.coefficient;
      else
        divides &= floor_remainder(t.coefficient, d) == 0;
    }
    if (divides) return integer(floor_remainder(number, d));
  }
  if (a == b || (a->is_integer() && a->integer() == 0)) return integer(0);
  if (exact_quotient(a, b) != nullptr) return integer(0);
  if (range(a).lower >= 0 && difference_range(b, a).lower >= 1) return a;
  return make(kind, {a, b});
}

}  // namespace calque
