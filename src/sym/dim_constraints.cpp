#include "calque/sym/dim_constraints.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "calque/base/error.h"
#include "sym/dim_constraints_impl.h"
#include "sym/env_impl.h"
#include "sym/linear_text.h"
#include "sym/python_print.h"
#include "sym/range.h"

namespace calque {

namespace {

// What the solver does not look into.
bool is_supported(const Expr* e) {
  using enum ExprKind;
  constexpr std::array supported = {integer, symbol, add, mul, pow, floor_div, mod, python_mod, eq, lt, le, gt, ge};
  return std::ranges::find(supported, e->kind()) != supported.end() && !e->is_float() &&
         std::ranges::all_of(e->args(), is_supported);
}

int64_t inverse(int64_t a, int64_t modulus) {  // of a, which has no divisor in common with the modulus
  int64_t r0 = modulus, r1 = floor_remainder(a, modulus), x0 = 0, x1 = 1;
  while (r1 != 0) {
    const int64_t q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    x0 = std::exchange(x1, x0 - q * x1);
  }
  return floor_remainder(x0, modulus);
}

// (a * b) mod m without leaving 64 bits.
int64_t multiply_mod(int64_t a, int64_t b, int64_t m) {
  a = floor_remainder(a, m);
  b = floor_remainder(b, m);
  int64_t out = 0;
  while (b > 0) {
    if (b % 2 != 0) out = out >= m - a ? out - (m - a) : out + a;
    a = a >= m - a ? a - (m - a) : a + a;
    b /= 2;
  }
  return out;
}

// Both at once, by the Chinese remainder theorem; the moduli may share divisors. None if they exclude each other.
std::optional<Congruence> merged(const Congruence& a, const Congruence& b) {
  const int64_t g = std::gcd(a.modulus, b.modulus);
  const int64_t distance = b.remainder - a.remainder;
  if (distance % g != 0) return std::nullopt;
  const int64_t step = b.modulus / g;
  int64_t modulus;
  if (__builtin_mul_overflow(a.modulus, step, &modulus)) throw Unsolvable{};
  const int64_t times = step == 1 ? 0 : multiply_mod(distance / g, inverse(a.modulus / g, step), step);
  return Congruence{floor_remainder(a.remainder + multiply_mod(a.modulus, times, modulus), modulus), modulus};
}

const Expr* substituted(ExprPool& pool, const Expr* e, size_t symbol, int64_t value) {
  if (e->kind() == ExprKind::symbol) return e->symbol_index() == symbol ? pool.integer(value) : e;
  if (e->args().empty()) return e;
  std::vector<const Expr*> args;
  for (const Expr* a : e->args()) args.push_back(substituted(pool, a, symbol, value));
  return pool.rebuild(e, args);
}

std::string key_of(const Quotient& base, const Quotient& divisor) {
  std::string out;
  for (const Polynomial* p : {&base.top, &base.bottom, &divisor.top, &divisor.bottom}) {
    for (size_t i = 0; i <= p->degree(); ++i) out += p->coefficient(i).str() + " ";
    out += "| ";
  }
  return out;
}

}  // namespace

int64_t DimConstraints::Impl::example(size_t symbol) const {
  if (!env.symbols()[symbol].hint) throw Unsolvable{};
  return *env.symbols()[symbol].hint;
}

std::vector<size_t> DimConstraints::Impl::free_symbols(const Expr* e) const {
  std::vector<size_t> out = env.impl().knowledge.free_symbols(e);
  std::erase_if(out, [&](size_t i) { return substitutions.contains(i); });
  return out;
}

std::string DimConstraints::Impl::source_name(size_t symbol) const {
  const auto at = sources.find(symbol);
  if (at == sources.end() || at->second.empty())
    throw UserError("the symbol " + env.symbols()[symbol].name + " is no input's dimension, but a constraint depends on it");
  return at->second[0].name();
}

std::string DimConstraints::Impl::text(const Expr* e) const {
  return python_text(e, [&](size_t symbol) {
    const auto known = substitutions.find(symbol);
    return known != substitutions.end() ? std::to_string(known->second) : source_name(symbol);
  });
}

const std::string* DimConstraints::Impl::debug_name(const std::string& source) const {
  const auto at = std::ranges::find(debug_names, source, &DebugNames::value_type::first);
  return at == debug_names.end() ? nullptr : &at->second;
}

DimConstraints::Impl::Result* DimConstraints::Impl::result_for(const std::string& source) {
  const std::string* name = debug_name(source);
  return name == nullptr ? nullptr : &results[*name];
}

// base % divisor is a number, by the example; that the base leaves it is a condition of its own.
Quotient DimConstraints::Impl::remainder_of(const Quotient& base, const Quotient& divisor, size_t symbol) {
  const Rational here = example(symbol);
  const Rational d = divisor.at(here);
  if (d.sign() == 0) throw Unsolvable{};
  const Quotient left = Quotient(Polynomial(floor_remainder(base.at(here), d)));
  const Quotient rest = base - left;
  // A multiple of the divisor, whatever the symbol is.
  const Quotient ratio = rest / divisor;
  if (ratio.bottom.is_constant() && ratio.top.is_constant() &&
      (ratio.top.coefficient(0) / ratio.bottom.coefficient(0)).is_integer())
    return left;
  if (divisor.top.is_constant() && divisor.bottom.is_constant() && rest.bottom.is_constant()) {
    bool whole = true;  // every coefficient is a multiple of the divisor
    for (size_t i = 0; i <= rest.top.degree(); ++i)
      whole &= (rest.top.coefficient(i) / rest.bottom.coefficient(0) / d).is_integer();
    if (whole) return left;
  }
  std::string key = key_of(rest, divisor);
  if (rest.bottom.is_constant() && divisor.top.is_constant() && divisor.bottom.is_constant() && rest.top.degree() == 1) {
    // a*s + b is a multiple of d: with everything whole, a*s = -b modulo d.
    const Rational scale = rest.bottom.coefficient(0);
    const Rational a = rest.top.coefficient(1) / scale, b = rest.top.coefficient(0) / scale;
    const int64_t common = std::lcm(std::lcm(a.denominator(), b.denominator()), d.denominator());
    const int64_t whole_a = (a * Rational(common)).numerator(), whole_b = (b * Rational(common)).numerator();
    const int64_t whole_d = std::abs((d * Rational(common)).numerator());
    const int64_t g = std::gcd(whole_a, whole_d);
    if (whole_b % g == 0) {
      const int64_t modulus = whole_d / g;
      const int64_t remainder =
          modulus == 1 ? 0 : multiply_mod(-whole_b / g, inverse(floor_remainder(whole_a / g, modulus), modulus), modulus);
      if (modulus > 1) {
        congruences[symbol].push_back({remainder, modulus});
        key = std::to_string(remainder) + " mod " + std::to_string(modulus);
      }
    }
  }
  congruence_keys.emplace(symbol, std::move(key));
  return left;
}

// The expression in one symbol as a quotient of polynomials, // and % rewritten by the example.
Quotient DimConstraints::Impl::converted(const Expr* e, size_t symbol) {
  switch (e->kind()) {
    case ExprKind::integer: return Quotient(Polynomial(Rational(e->integer())));
    case ExprKind::symbol: {
      if (e->symbol_index() == symbol) return Quotient(Polynomial::variable());
      return Quotient(Polynomial(Rational(substitutions.at(e->symbol_index()))));
    }
    case ExprKind::add:
    case ExprKind::mul: {
      Quotient out = converted(e->arg(0), symbol);
      for (const Expr* a : e->args().subspan(1))
        out = e->kind() == ExprKind::add ? out + converted(a, symbol) : out * converted(a, symbol);
      return out;
    }
    case ExprKind::pow: {
      if (e->exponent() > 8) throw Unsolvable{};
      const Quotient base = converted(e->arg(0), symbol);
      Quotient out = base;
      for (int64_t i = 1; i < e->exponent(); ++i) out = out * base;
      return out;
    }
    case ExprKind::mod:
    case ExprKind::python_mod: return remainder_of(converted(e->arg(0), symbol), converted(e->arg(1), symbol), symbol);
    case ExprKind::floor_div: {
      const Quotient base = converted(e->arg(0), symbol), divisor = converted(e->arg(1), symbol);
      return (base - remainder_of(base, divisor, symbol)) / divisor;
    }
    case ExprKind::float_number:
    case ExprKind::clean_div:
    case ExprKind::max:
    case ExprKind::min:
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
    case ExprKind::dense_indicator:
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
  throw Unsolvable{};
}

bool DimConstraints::Impl::add(const Expr* e) {
  if (e->kind() == ExprKind::true_value) return true;
  const auto value = evaluate_expr(e, [&](size_t i) -> std::optional<Number> {
    if (const auto known = substitutions.find(i); known != substitutions.end()) return known->second;
    return env.impl().knowledge.hint(i);
  });
  if (value && value->integer == 0) inconsistencies.push_back(e->str() + " is inconsistent!");
  if (!is_supported(e)) return false;
  const std::vector<size_t> free = free_symbols(e);
  if (free.empty()) return true;
  if (free.size() > 1) {
    multivariate.push_back(e);
    return false;
  }
  const size_t s = free[0];
  const size_t before = congruence_keys.size();
  try {
    const Quotient difference = converted(e->arg(0), s) - converted(e->arg(1), s);
    const Comparison comparison = comparison_of(e->kind());
    if (difference.top.is_constant() && difference.bottom.is_constant()) {
      const int sign = difference.top.coefficient(0).sign() * difference.bottom.coefficient(0).sign();
      if (sign_satisfies(comparison, sign)) return before == congruence_keys.size();
      inconsistencies.push_back(e->str() + ", rewritten with congruences, is inconsistent!");
      return false;
    }
    if (comparison == Comparison::equal) with_equalities.insert(s);
    univariate[s].push_back({e, difference, comparison});
  } catch (const Unsolvable&) {
    // Too large or not polynomial: nothing useful can be said.
  }
  return false;
}

void DimConstraints::Impl::raise_inconsistencies() {
  if (inconsistencies.empty()) return;
  std::string lines;
  for (const std::string& line : std::exchange(inconsistencies, {})) lines += (lines.empty() ? "" : "\n") + line;
  throw UserError(ErrorKind::constraint_violation, "The following inconsistencies were found:\n" + lines);
}

void DimConstraints::Impl::solve_equalities() {
  while (!with_equalities.empty()) {
    const size_t s = *with_equalities.begin();
    with_equalities.erase(with_equalities.begin());
    const std::vector<Univariate> conditions = std::move(univariate[s]);
    univariate.erase(s);
    // An equality in one symbol that is not always true holds at single points; the example is one of them.
    const int64_t value = example(s);
    static_results.insert(source_name(s) + " == " + std::to_string(value));
    if (Result* r = result_for(source_name(s))) r->value = value;
    substitutions[s] = value;
    for (const Expr* e : std::exchange(multivariate, {})) add(e);
    raise_inconsistencies();
  }
}

void DimConstraints::Impl::solve_congruences() {
  for (const auto& [s, list] : congruences) {
    if (substitutions.contains(s)) continue;
    std::optional<Congruence> all = list[0];
    try {
      for (size_t i = 1; i < list.size() && all; ++i) all = merged(*all, list[i]);
    } catch (const Unsolvable&) {
      continue;
    }
    if (!all)
      throw UserError(ErrorKind::constraint_violation, "the congruences of " + source_name(s) + " exclude each other");
    const std::string& source = source_name(s);
    const std::string* name = debug_name(source);
    const std::string fresh = "_" + (name != nullptr ? *name : source);
    // s + c is a multiple of the modulus, with c not negative: s = modulus * fresh - c.
    const int64_t c = floor_remainder(-all->remainder, all->modulus);
    const std::string product = std::to_string(all->modulus) + "*" + fresh;
    const std::string value = c == 0 ? product : "(" + std::to_string(-c) + ") + " + product;
    dynamic_results.insert(source + " == (" + value + ")");
    if (Result* r = result_for(source)) r->linear = {fresh, all->modulus, -c};
  }
}

void DimConstraints::Impl::solve_bounds() {
  for (const auto& [s, conditions] : univariate) {
    const std::string& source = source_name(s);
    Result* result = result_for(source);
    try {
      std::vector<Interval> solution{Interval{}};
      for (const Univariate& c : conditions) solution = intersect(solution, solve_comparison(c.difference, c.comparison));
      const auto here = std::ranges::find_if(solution, [&](const Interval& i) { return i.contains(example(s)); });
      if (here == solution.end()) throw Unsolvable{};
      if (here->is_point()) {
        dynamic_results.insert(source + " == " + here->lower->str());
        if (result != nullptr && here->lower->is_integer()) result->value = here->lower->numerator();
        continue;
      }
      // Sizes are at least 1 to sympy; what that implies is not repeated.
      const int64_t at_least = here->lower ? (here->lower_open ? here->lower->floor() + 1 : here->lower->ceil()) : 0;
      if (here->lower && (at_least > 1 || !env.symbols()[s].positive)) {
        const std::string sign = here->lower_open && !here->lower_rounded ? " < " : " <= ";
        dynamic_results.insert((here->lower_rounded ? std::to_string(at_least) : here->lower->str()) + sign + source);
        if (result != nullptr) result->min = at_least;
      }
      if (here->upper) {
        const int64_t at_most = here->upper_open ? here->upper->ceil() - 1 : here->upper->floor();
        const std::string sign = here->upper_open && !here->upper_rounded ? " < " : " <= ";
        dynamic_results.insert(source + sign + (here->upper_rounded ? std::to_string(at_most) : here->upper->str()));
        if (result != nullptr) result->max = at_most;
      }
    } catch (const Unsolvable&) {
      for (const Univariate& c : conditions) dynamic_results.insert(text(c.written));
    }
  }
}

void DimConstraints::Impl::solve_equivalences() {
  for (const auto& [source, e] : equivalences) {
    const std::vector<size_t> free = free_symbols(e);
    if (free.empty()) {
      const auto value = evaluate_expr(e, [&](size_t i) -> std::optional<Number> { return substitutions.at(i); });
      if (!value) continue;
      static_results.insert(source.name() + " == " + std::to_string(value->integer));
      if (Result* result = result_for(source.name())) result->value = value->integer;
      continue;
    }
    // With the values that are forced put in.
    const Expr* simplified = e;
    for (const auto& [symbol, value] : substitutions) simplified = substituted(env.impl().pool, simplified, symbol, value);
    dynamic_results.insert(source.name() + " == " + text(simplified));
    note_equation(source, simplified, free);
  }
}

// For fixes: a multiple of one named dimension plus a number. A source without a name of its own is shown as it is.
void DimConstraints::Impl::note_equation(const Source& source, const Expr* e, const std::vector<size_t>& free) {
  Result::Linear linear{"", 0, 0};
  for (const Term& t : terms_of(e)) {
    if (t.rest == nullptr)
      linear.offset = t.coefficient;
    else if (t.rest->kind() == ExprKind::symbol && free.size() == 1)
      linear.multiplier = t.coefficient;
    else
      return;
  }
  const std::string* root = debug_name(source_name(free[0]));
  if (root == nullptr) return;
  const std::string* own = debug_name(source.name());
  linear.root = *root;
  // A derived dim's name is an expression: what is made of it is made of its root.
  if (const std::optional<NamedDim::Derived> inner = parse_linear(*root); inner && inner->root != *root) {
    linear.root = inner->root;
    linear.offset += linear.multiplier * inner->offset;
    linear.multiplier *= inner->multiplier;
  }
  if (own != nullptr && *own == linear.root && linear.multiplier == 1 && linear.offset == 0) return;
  results[own != nullptr ? *own : source.name()].linear = linear;
}

void DimConstraints::Impl::solve() {
  raise_inconsistencies();
  solve_equalities();
  solve_congruences();
  solve_bounds();
  solve_equivalences();
}

DimConstraints::DimConstraints(ShapeEnv& env, SymbolSources sources, std::set<size_t> marked_dynamic, DebugNames debug_names)
    : impl_(new Impl{env,
                     std::move(sources),
                     std::move(marked_dynamic),
                     std::move(debug_names),
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {}}) {}
DimConstraints::~DimConstraints() = default;
DimConstraints::DimConstraints(DimConstraints&&) noexcept = default;
DimConstraints& DimConstraints::operator=(DimConstraints&&) noexcept = default;

bool DimConstraints::add(SymBool condition) {
  if (!condition.is_symbolic()) {
    if (!condition.plain()) impl_->inconsistencies.push_back("False is inconsistent!");
    return condition.plain();
  }
  return impl_->add(condition.expr());
}

void DimConstraints::add_equality(const Source& source, SymInt value) {
  const Expr* e = impl_->env.impl().expr(value);
  if (e->is_integer()) {
    impl_->static_results.insert(source.name() + " == " + std::to_string(e->integer()));
    if (Impl::Result* r = impl_->result_for(source.name())) r->value = e->integer();
  } else {
    impl_->equivalences.emplace_back(source, e);
  }
}

void DimConstraints::solve() { impl_->solve(); }
const std::set<std::string>& DimConstraints::static_results() const { return impl_->static_results; }
const std::set<std::string>& DimConstraints::dynamic_results() const { return impl_->dynamic_results; }

std::map<std::string, int64_t> DimConstraints::forced_specializations() const {
  std::map<std::string, int64_t> out;
  for (const auto& [symbol, value] : impl_->substitutions) {
    if (!impl_->marked_dynamic.contains(symbol)) continue;
    const std::string& source = impl_->source_name(symbol);
    const std::string* name = impl_->debug_name(source);
    out[name != nullptr ? *name + " = " + source : source] = value;
  }
  return out;
}

}  // namespace calque
