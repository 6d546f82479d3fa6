#include "sym/expr_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "calque/base/error.h"
#include "sym/knowledge.h"
#include "sym/range.h"

namespace calque {

namespace {

// Deep enough for any program; shallow enough that walking an expression cannot exhaust the stack.
constexpr uint16_t greatest_depth = 1000;

uint64_t mixed(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 33);
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r))
    throw UserError("symbolic integer: overflow in " + std::to_string(a) + " + " + std::to_string(b));
  return r;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    throw UserError("symbolic integer: overflow in " + std::to_string(a) + " * " + std::to_string(b));
  return r;
}

Term split_term(const Expr* e) {
  if (e->is_integer()) return {e->integer(), nullptr};
  if (e->kind() == ExprKind::mul) return {e->coefficient(), e->without_coefficient()};
  return {1, e};
}

Terms terms_of(const Expr* e) {
  Terms out;
  if (e->kind() != ExprKind::add) {
    out.push_back(split_term(e));
  } else {
    out.reserve(e->args().size());
    for (const Expr* a : e->args()) out.push_back(split_term(a));
  }
  return out;
}

Factors factors_of(const Expr* rest) {
  Factors out;
  const auto push = [&](const Expr* f) {
    if (f->kind() == ExprKind::pow)
      out.push_back({f->arg(0), f->exponent()});
    else
      out.push_back({f, 1});
  };
  if (rest == nullptr) return out;
  if (rest->kind() == ExprKind::mul) {
    for (const Expr* a : rest->args())
      if (!a->is_integer()) push(a);
  } else {
    push(rest);
  }
  return out;
}

ExprPool::ExprPool(ShapeEnv* env) : env_(env), table_(256, nullptr) {}

ValueRange ExprPool::range(const Expr* e) const { return knowledge_->range(e); }

bool ExprPool::is_not_negative_float(const Expr* e) const { return knowledge_->float_range(e, nullptr).lower >= 0; }

ValueRange ExprPool::difference_range(const Expr* a, const Expr* b) {
  try {
    // A number only shifts a range.
    if (b->is_integer()) return range_add(range(expand(a)), range_negate(range_of_integer(b->integer())));
    if (a->is_integer()) return range_add(range_of_integer(a->integer()), range_negate(range(expand(b))));
    return range(expand(sub(a, b)));
  } catch (const UserError&) {
    return {};
  }
}

void ExprPool::grow() {
  std::vector<const Expr*> bigger(table_.size() * 2, nullptr);
  for (const Expr* e : table_) {
    if (e == nullptr) continue;
    size_t at = e->hash_ & (bigger.size() - 1);
    while (bigger[at] != nullptr) at = (at + 1) & (bigger.size() - 1);
    bigger[at] = e;
  }
  table_ = std::move(bigger);
}

const Expr* ExprPool::make(ExprKind kind, int64_t value, std::span<const Expr* const> args) {
  uint64_t hash = mixed(static_cast<uint64_t>(kind), static_cast<uint64_t>(value));
  for (const Expr* a : args) hash = mixed(hash, a->id_);
  size_t at = hash & (table_.size() - 1);
  for (; table_[at] != nullptr; at = (at + 1) & (table_.size() - 1)) {
    const Expr* e = table_[at];
    if (e->hash_ == hash && e->kind_ == kind && e->value_ == value && std::ranges::equal(e->args(), args)) return e;
  }

  uint64_t size = 1;
  uint16_t depth = 0;
  for (const Expr* a : args) {
    internal_assert(a->env_ == env_, "an expression was built from nodes of another environment");
    size += a->tree_size_;
    depth = std::max(depth, a->depth_);
  }
  if (depth >= greatest_depth)
    throw UserError("symbolic integer: the expression is nested more than " + std::to_string(greatest_depth) +
                    " levels deep");

  auto* e = new (arena_.allocate(sizeof(Expr), alignof(Expr))) Expr();
  e->kind_ = kind;
  e->value_ = value;
  e->hash_ = hash;
  e->env_ = env_;
  e->id_ = ++count_;
  e->depth_ = static_cast<uint16_t>(depth + 1);
  e->tree_size_ = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
  e->rest_ = e;
  if (!args.empty()) {
    auto* copy = static_cast<const Expr**>(arena_.allocate(args.size_bytes(), alignof(const Expr*)));
    std::ranges::copy(args, copy);
    e->args_ = copy;
    e->n_args_ = static_cast<uint32_t>(args.size());
  }
  bool float_args = false;
  for (const Expr* a : args) {
    e->symbol_mask_ |= a->symbol_mask_;
    e->has_unbacked_ |= a->has_unbacked_;
    float_args |= a->is_float_;
  }
  switch (kind) {
    case ExprKind::float_number:
    case ExprKind::to_float:
    case ExprKind::int_true_div:
    case ExprKind::float_true_div:
    case ExprKind::float_pow:
    case ExprKind::round_decimal:
    case ExprKind::trunc_to_float:
    case ExprKind::opaque_unary: e->is_float_ = true; break;
    case ExprKind::floor_div:  // Python's // and % of floats are floats
    case ExprKind::mod:
    case ExprKind::python_mod:
    case ExprKind::absolute:
    case ExprKind::piecewise:
    case ExprKind::add:
    case ExprKind::mul:
    case ExprKind::pow:
    case ExprKind::max:
    case ExprKind::min:
    case ExprKind::where: e->is_float_ = float_args; break;
    case ExprKind::integer:
    case ExprKind::symbol:
    case ExprKind::clean_div:
    case ExprKind::pow_by_natural:
    case ExprKind::floor_to_int:
    case ExprKind::ceil_to_int:
    case ExprKind::trunc_to_int:
    case ExprKind::round_to_int:
    case ExprKind::floor:
    case ExprKind::bitwise_and:
    case ExprKind::bitwise_or:
    case ExprKind::bitwise_xor:
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
    case ExprKind::false_value: break;  // integers and booleans, whatever they are made of
  }
  table_[at] = e;
  if (count_ * 2ULL > table_.size()) grow();
  return e;
}

const Expr* ExprPool::integer(int64_t value) { return make(ExprKind::integer, value, {}); }

// As in sympy, zero has no sign and there is one NaN.
const Expr* ExprPool::float_number(double value) {
  if (value == 0) value = 0.0;
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return make(ExprKind::float_number, std::bit_cast<int64_t>(value), {});
}

const Expr* ExprPool::symbol(size_t index, bool unbacked, bool is_float) {
  const Expr* e = make(ExprKind::symbol, static_cast<int64_t>(index), {});
  auto* fresh = const_cast<Expr*>(e);  // still being made: nobody else has seen it
  fresh->symbol_mask_ = uint64_t{1} << (index % 64);
  fresh->has_unbacked_ = unbacked;
  fresh->is_float_ = is_float;
  return e;
}

const Expr* ExprPool::boolean(bool value) { return make(value ? ExprKind::true_value : ExprKind::false_value, 0, {}); }

const Expr* ExprPool::sum(Terms terms) {
  // A sum with a float number is a float: its numbers become one float, as sympy's do.
  bool any_float = false;
  for (const Term& t : terms) any_float |= t.rest != nullptr && t.rest->kind() == ExprKind::float_number;
  if (any_float) {
    double total = 0;
    erase_where(terms, [&](const Term& t) {
      const bool number = t.rest == nullptr || t.rest->kind() == ExprKind::float_number;
      if (number) total += static_cast<double>(t.coefficient) * (t.rest != nullptr ? t.rest->float_value() : 1.0);
      return number;
    });
    terms.push_back({1, float_number(total)});
  }

  const auto key = [](const Term& t) { return t.rest == nullptr ? 0U : t.rest->id(); };
  const auto less = [&](const Term& a, const Term& b) { return key(a) < key(b); };
  if (!std::is_sorted(terms.begin(), terms.end(), less)) std::stable_sort(terms.begin(), terms.end(), less);
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term t = terms[i];
    for (++i; i < terms.size() && terms[i].rest == t.rest; ++i)
      t.coefficient = checked_add(t.coefficient, terms[i].coefficient);
    if (t.coefficient != 0) terms[kept++] = t;
  }
  terms.resize(kept);

  if (terms.empty()) return integer(0);
  const auto build = [&](const Term& t) {
    return t.rest == nullptr ? integer(t.coefficient) : scale(t.coefficient, t.rest);
  };
  if (terms.size() == 1) return build(terms[0]);
  ExprArgs args;
  args.reserve(terms.size());
  bool same_rests = true;
  for (const Term& t : terms) {
    args.push_back(build(t));
    same_rests &= args.back()->kind() != ExprKind::add && split_term(args.back()).rest == t.rest;
  }
  if (!same_rests) return sum_of(all(args));  // a division cancelled against its coefficient: collect again
  return make(ExprKind::add, terms[0].rest == nullptr ? terms[0].coefficient : 0, all(args));
}

const Expr* ExprPool::sum_of(std::span<const Expr* const> args) {
  Terms terms;
  for (const Expr* a : args)
    for (const Term& t : terms_of(a)) terms.push_back(t);
  return sum(std::move(terms));
}

const Expr* ExprPool::product_of(std::span<const Expr* const> args) {
  int64_t coefficient = 1;
  Factors factors;
  for (const Expr* a : args) {
    const Term t = split_term(a);
    coefficient = checked_mul(coefficient, t.coefficient);
    for (const Factor& f : factors_of(t.rest)) factors.push_back(f);
  }
  return product(coefficient, std::move(factors));
}

const Expr* ExprPool::add(const Expr* a, const Expr* b) {
  // Both are sorted already: one pass.
  const Terms left = terms_of(a), right = terms_of(b);
  const auto key = [](const Term& t) { return t.rest == nullptr ? 0U : t.rest->id(); };
  Terms both;
  both.reserve(left.size() + right.size());
  const Term* x = left.begin();
  for (const Term& y : right) {
    while (x != left.end() && key(*x) <= key(y)) both.push_back(*x++);
    both.push_back(y);
  }
  while (x != left.end()) both.push_back(*x++);
  return sum(std::move(both));
}

const Expr* ExprPool::sub(const Expr* a, const Expr* b) { return a == b ? integer(0) : add(a, scale(-1, b)); }

const Expr* ExprPool::scale(int64_t factor, const Expr* e) {
  if (factor == 0) return integer(0);
  if (factor == 1) return e;
  if (e->is_integer()) return integer(checked_mul(factor, e->integer()));
  if (e->kind() == ExprKind::add) {
    Terms terms = terms_of(e);
    for (Term& t : terms) t.coefficient = checked_mul(t.coefficient, factor);
    return sum(std::move(terms));
  }
  const Term t = split_term(e);
  return product(checked_mul(factor, t.coefficient), factors_of(t.rest));
}

const Expr* ExprPool::product(int64_t coefficient, Factors factors) {
  if (coefficient == 0) return integer(0);
  const auto less = [](const Factor& a, const Factor& b) { return a.base->id() < b.base->id(); };
  if (!std::is_sorted(factors.begin(), factors.end(), less)) std::stable_sort(factors.begin(), factors.end(), less);
  size_t kept = 0;
  for (size_t i = 0; i < factors.size();) {
    Factor f = factors[i];
    for (++i; i < factors.size() && factors[i].base == f.base; ++i)
      f.exponent = checked_add(f.exponent, factors[i].exponent);
    if (f.exponent != 0) factors[kept++] = f;
  }
  factors.resize(kept);

  for (size_t i = 0; i < factors.size(); ++i) {
    const Expr* base = factors[i].base;
    if (base->kind() == ExprKind::clean_div) {  // b * (a / b) is a
      const Term divisor = split_term(base->arg(1));
      const auto same = std::ranges::find_if(factors, [&](const Factor& f) { return f.base == base->arg(1); });
      const bool by_number = divisor.rest == nullptr && coefficient % divisor.coefficient == 0;
      if (!by_number && same == factors.end()) continue;
      if (by_number)
        coefficient /= divisor.coefficient;
      else
        same->exponent -= 1;
      factors[i].exponent -= 1;
      erase_where(factors, [](const Factor& f) { return f.exponent == 0; });
      return mul(product(coefficient, std::move(factors)), base->arg(0));
    }
    if (base->kind() == ExprKind::float_number && (coefficient != 1 || factors[i].exponent != 1)) {
      const double number =
          static_cast<double>(coefficient) * std::pow(base->float_value(), static_cast<double>(factors[i].exponent));
      factors.erase(factors.begin() + i);
      factors.push_back({float_number(number), 1});
      return product(1, std::move(factors));
    }
  }
  const auto is_float_number = [](const Factor& f) { return f.base->kind() == ExprKind::float_number; };
  if (std::ranges::count_if(factors, is_float_number) > 1) {
    double number = 1;
    for (const Factor& f : factors)
      if (is_float_number(f)) number *= f.base->float_value();
    erase_where(factors, is_float_number);
    factors.push_back({float_number(number), 1});
    return product(1, std::move(factors));
  }

  if (factors.empty()) return integer(coefficient);
  if (factors.size() == 1 && factors[0].exponent == 1) {
    if (coefficient == 1) return factors[0].base;
    if (factors[0].base->kind() == ExprKind::add) return scale(coefficient, factors[0].base);
  }
  ExprArgs args;
  args.reserve(factors.size() + 1);
  if (coefficient != 1) args.push_back(integer(coefficient));
  for (const Factor& f : factors) {
    if (f.exponent == 1) {
      args.push_back(f.base);
    } else {
      const Expr* pow_args[] = {f.base, integer(f.exponent)};
      args.push_back(make(ExprKind::pow, f.exponent, pow_args));
    }
  }
  if (args.size() == 1) return args[0];
  const Expr* e = make(ExprKind::mul, coefficient, all(args));
  if (coefficient != 1 && e->rest_ == e) {
    const auto without = all(args).subspan(1);
    const_cast<Expr*>(e)->rest_ = without.size() == 1 ? without[0] : make(ExprKind::mul, 1, without);
  }
  return e;
}

ExprPool::Answer& ExprPool::answer_for(ExprKind kind, const Expr* a, const Expr* b) {
  const uint64_t key = a->id_ * 31 + b->id_ * 7 + static_cast<uint64_t>(kind) * 3;
  return answers_[key % answers_.size()];
}

const Expr* ExprPool::mul(const Expr* a, const Expr* b) {
  Answer& last = answer_for(ExprKind::mul, a, b);
  if (last.a == a && last.b == b && last.kind == ExprKind::mul) return last.result;
  const Expr* result = mul_uncached(a, b);
  last = {a, b, result, 0, ExprKind::mul};
  return result;
}

const Expr* ExprPool::mul_uncached(const Expr* a, const Expr* b) {
  if (a->is_integer()) return scale(a->integer(), b);
  if (b->is_integer()) return scale(b->integer(), a);
  const Term x = split_term(a), y = split_term(b);
  Factors factors = factors_of(x.rest);
  const Factors more = factors_of(y.rest);
  append(factors, more);
  return product(checked_mul(x.coefficient, y.coefficient), std::move(factors));
}

const Expr* ExprPool::pow(const Expr* base, int64_t exponent) {
  if (exponent < 0) throw UserError("symbolic integer: the exponent " + std::to_string(exponent) + " is negative");
  if (exponent == 0) return integer(1);
  if (base->is_integer()) {
    if (base->integer() == 0 || base->integer() == 1) return base;
    if (base->integer() == -1) return integer(exponent % 2 == 0 ? 1 : -1);
    int64_t out = 1;
    for (int64_t i = 0; i < exponent; ++i) out = checked_mul(out, base->integer());
    return integer(out);
  }
  const Term t = split_term(base);
  Factors factors = factors_of(t.rest);
  for (Factor& f : factors) f.exponent = checked_mul(f.exponent, exponent);
  return product(pow(integer(t.coefficient), exponent)->integer(), std::move(factors));
}

const Expr* ExprPool::rebuild(const Expr* e, std::span<const Expr* const> args) {
  switch (e->kind()) {
    case ExprKind::integer:
    case ExprKind::float_number:
    case ExprKind::symbol:
    case ExprKind::true_value:
    case ExprKind::false_value: return e;
    case ExprKind::add: return sum_of(args);
    case ExprKind::mul: return product_of(args);
    case ExprKind::pow: return pow(args[0], e->exponent());
    case ExprKind::floor_div:
    case ExprKind::clean_div: return divide(e->kind(), args[0], args[1]);
    case ExprKind::mod:
    case ExprKind::python_mod: return mod(e->kind(), args[0], args[1]);
    case ExprKind::max:
    case ExprKind::min: return extremum(e->kind(), {args.begin(), args.end()});
    case ExprKind::where: return where(args[0], args[1], args[2]);
    case ExprKind::pow_by_natural: return pow_by_natural(args[0], args[1]);
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
    case ExprKind::floor: return float_function(e->kind(), args);
    case ExprKind::absolute: return absolute(args[0]);
    case ExprKind::opaque_unary: return opaque(e->opaque_function(), args[0]);
    case ExprKind::bitwise_and:
    case ExprKind::bitwise_or:
    case ExprKind::bitwise_xor: return bitwise(e->kind(), args[0], args[1]);
    case ExprKind::piecewise: return piecewise(args[0], args[1], args[2]);
    case ExprKind::dense_indicator: return dense_indicator(args);
    case ExprKind::eq:
    case ExprKind::ne:
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge: return relation(e->kind(), args[0], args[1]);
    case ExprKind::logical_and:
    case ExprKind::logical_or: return connective(e->kind(), {args.begin(), args.end()});
    case ExprKind::logical_not: return logical_not(args[0]);
  }
  throw InternalError("an expression of unknown kind");
}

}  // namespace calque
