// Ranges, replacement, simplification and decisions. What is learnt from guards is in learning.cpp.
#include "sym/knowledge.h"

#include <algorithm>
#include <numeric>

#include "calque/base/error.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr size_t most_shifted_terms = 256;

}  // namespace

const Expr* Knowledge::new_symbol(Symbol symbol, bool unbacked) {
  const size_t index = symbols_.size();
  nodes_.push_back(pool_.symbol(index, unbacked, symbol.is_float));
  symbols_.push_back(std::move(symbol));
  replacements_.push_back(nullptr);
  return nodes_.back();
}

std::vector<size_t> Knowledge::free_symbols(const Expr* e) const {
  std::vector<size_t> out;
  std::vector<const Expr*> todo{e};
  std::unordered_map<const Expr*, bool> seen;
  while (!todo.empty()) {
    const Expr* at = todo.back();
    todo.pop_back();
    if (at->symbol_mask() == 0 || !seen.emplace(at, true).second) continue;
    if (at->kind() == ExprKind::symbol) out.push_back(at->symbol_index());
    for (const Expr* a : at->args()) todo.push_back(a);
  }
  std::ranges::sort(out);
  return out;
}

std::optional<Number> Knowledge::hint(size_t symbol) const {
  const Symbol& s = symbols_[symbol];
  if (s.is_float) return s.float_hint;
  return s.hint;
}

ValueRange Knowledge::range(const Expr* e) { return range(e, nullptr); }

ValueRange Knowledge::range(const Expr* e, Premises* premises) {
  if (e->is_integer()) return range_of_integer(e->integer());
  if (e->is_float()) return {};
  const auto with_facts = [&] {
    ValueRange r = compute_range(e, premises);
    if (!facts_.empty() && (premises == nullptr || premises->use_facts))
      if (const auto fact = facts_.find(e); fact != facts_.end()) {
        const ValueRange both = range_intersect(r, fact->second.range);
        if (!range_is_empty(both)) r = both;
      }
    return r;
  };
  if (premises != nullptr && (!premises->use_facts || e->has_unbacked())) {
    if (const auto known = premises->ranges.find(e); known != premises->ranges.end()) return known->second;
    const ValueRange r = with_facts();
    premises->ranges.emplace(e, r);
    return r;
  }
  Expr::Cache& cache = e->cache();
  if (cache.range_at != epoch_) {
    const ValueRange r = with_facts();
    cache.lower = r.lower;
    cache.upper = r.upper;
    cache.range_at = epoch_;
  }
  return {cache.lower, cache.upper};
}

namespace {

// What a size-oblivious test believes of data that is a size: neither 0 nor 1, and far from the largest integer.
ValueRange oblivious_range(ValueRange own) {
  const int64_t lower = std::max<int64_t>(2, own.lower);
  int64_t upper = std::min<int64_t>(int64_t{1} << 48, own.upper);
  if (upper > lower) --upper;
  return lower <= upper ? ValueRange{lower, upper} : own;
}

}  // namespace

ValueRange Knowledge::compute_range(const Expr* e, Premises* premises) {
  const auto range = [&](const Expr* a) { return this->range(a, premises); };
  switch (e->kind()) {
    case ExprKind::symbol: {
      const Symbol& symbol = symbols_[e->symbol_index()];
      const bool as_size = premises != nullptr && premises->size_oblivious && symbol.size_like;
      const ValueRange own = as_size ? oblivious_range(symbol.range) : symbol.range;
      const Expr* stands_for = replacements_[e->symbol_index()];
      return stands_for == nullptr ? own : range_intersect(own, range(stands_for));
    }
    case ExprKind::add: {
      ValueRange out{0, 0};
      for (const Expr* a : e->args()) out = range_add(out, range(a));
      return out;
    }
    case ExprKind::mul: {
      ValueRange out{1, 1};
      for (const Expr* a : e->args()) out = range_mul(out, range(a));
      return out;
    }
    case ExprKind::pow: return range_pow(range(e->arg(0)), e->exponent());
    case ExprKind::floor_div:
    case ExprKind::clean_div: return range_floor_div(range(e->arg(0)), range(e->arg(1)));
    case ExprKind::mod:
    case ExprKind::python_mod: return range_mod(range(e->arg(0)), range(e->arg(1)));
    case ExprKind::max:
    case ExprKind::min: {
      ValueRange out = range(e->arg(0));
      for (const Expr* a : e->args().subspan(1))
        out = e->kind() == ExprKind::max ? range_max(out, range(a)) : range_min(out, range(a));
      return out;
    }
    case ExprKind::where:
    case ExprKind::piecewise: return range_union(range(e->arg(1)), range(e->arg(2)));
    case ExprKind::absolute: {
      const ValueRange r = range(e->arg(0));
      return {0, range_max(r, range_negate(r)).upper};
    }
    case ExprKind::dense_indicator: return {0, 1};
    case ExprKind::bitwise_and:
    case ExprKind::bitwise_or:
    case ExprKind::bitwise_xor: return range_bitwise(e->kind(), range(e->arg(0)), range(e->arg(1)));
    case ExprKind::pow_by_natural: {
      const int64_t least = range(e->arg(0)).lower;
      return least >= 0 ? ValueRange{least == 0 ? 0 : 1, ValueRange::unbounded_above} : ValueRange{};
    }
    case ExprKind::floor_to_int:
    case ExprKind::ceil_to_int:
    case ExprKind::trunc_to_int:
    case ExprKind::round_to_int:
    case ExprKind::floor: return integer_range(float_range(e->arg(0), premises), e->kind());
    case ExprKind::integer:
    case ExprKind::float_number:
    case ExprKind::to_float:
    case ExprKind::int_true_div:
    case ExprKind::float_true_div:
    case ExprKind::float_pow:
    case ExprKind::round_decimal:
    case ExprKind::trunc_to_float:
    case ExprKind::opaque_unary:
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
  return {};
}

// A product like s0*s1 - s0 has no useful range when its terms are taken one by one; with s0 = 2 + a, s1 = 2 + b it is
// 2 + a + 2*b + a*b, a sum of what cannot be negative.
ValueRange Knowledge::shifted_range(const Expr* core, Premises* premises) {
  const auto range = [&](const Expr* a) { return this->range(a, premises); };
  const Terms terms = terms_of(core);
  bool has_product = false;
  size_t size = 0;
  for (const Term& t : terms) {
    size_t here = 1;
    for (const Factor& f : factors_of(t.rest)) {
      // A clean division would cancel against a factor that means something else here.
      if (f.base->kind() == ExprKind::clean_div || f.exponent > 8) return {};
      for (int64_t n = 0; n < f.exponent && here <= most_shifted_terms; ++n) here *= 2;
    }
    has_product |= here > 2;
    size += here;
    if (size > most_shifted_terms) return {};
  }
  if (!has_product || terms.size() < 2) return {};

  Terms shifted;
  for (const Term& t : terms) {
    const Expr* product = pool_.integer(t.coefficient);
    for (const Factor& f : factors_of(t.rest)) {
      const int64_t lower = range(f.base).lower;
      const bool shift = lower != ValueRange::unbounded_below && lower != 0;
      const Expr* base = shift ? pool_.add(f.base, pool_.integer(lower)) : f.base;
      product = pool_.mul(product, pool_.pow(base, f.exponent));
    }
    for (const Term& part : terms_of(pool_.expand(product))) shifted.push_back(part);
  }
  ValueRange out{0, 0};
  for (const Term& t : terms_of(pool_.sum(std::move(shifted)))) {
    ValueRange product = range_of_integer(t.coefficient);
    for (const Factor& f : factors_of(t.rest)) {
      ValueRange r = range(f.base);
      if (r.lower != ValueRange::unbounded_below) r = range_add(r, range_negate(range_of_integer(r.lower)));
      product = range_mul(product, range_pow(r, f.exponent));
    }
    out = range_add(out, product);
  }
  return out;
}

ValueRange Knowledge::bounds(const Expr* core, Premises* premises) {
  ValueRange r = range_intersect(range(core, premises), shifted_range(core, premises));
  if (premises != nullptr && !premises->use_facts) return r;
  if (const auto fact = facts_.find(core); fact != facts_.end()) {
    const auto excluded = [&](int64_t v) {
      return std::ranges::find(fact->second.excluded, v) != fact->second.excluded.end();
    };
    while (r.lower < r.upper && excluded(r.lower)) ++r.lower;
    while (r.lower < r.upper && excluded(r.upper)) --r.upper;
  }
  return r;
}

const Expr* Knowledge::replace(const Expr* e) {
  if ((e->symbol_mask() & replaced_mask_) == 0) return e;
  Expr::Cache& cache = e->cache();
  if (cache.replaced_at == replacement_epoch_) return cache.replaced;
  const Expr* out = e;
  if (e->kind() == ExprKind::symbol) {
    if (const Expr* target = replacements_[e->symbol_index()]) {
      out = replace(target);
      replacements_[e->symbol_index()] = out;
    }
  } else {
    ExprArgs args;
    args.reserve(e->args().size());
    bool changed = false;
    for (const Expr* a : e->args()) {
      args.push_back(replace(a));
      changed |= args.back() != a;
    }
    if (changed) out = pool_.expand(pool_.rebuild(e, all(args)));
  }
  cache.replaced = out;
  cache.replaced_at = replacement_epoch_;
  return out;
}

bool Knowledge::leaves_no_remainder(const Expr* a, const Expr* b) {
  for (const ExprKind kind : {ExprKind::mod, ExprKind::python_mod}) {
    const ValueRange r = range(pool_.mod(kind, a, b));
    if (r.lower == 0 && r.upper == 0) return true;
  }
  return false;
}

const Expr* Knowledge::rewrite(const Expr* e) {
  if (e->args().empty()) return e;
  Expr::Cache& cache = e->cache();
  if (cache.simplified_at == epoch_) return cache.simplified;
  ExprArgs args;
  args.reserve(e->args().size());
  bool changed = e->kind() == ExprKind::max || e->kind() == ExprKind::min;  // newer ranges may drop arguments
  for (const Expr* a : e->args()) {
    args.push_back(rewrite(a));
    changed |= args.back() != a;
  }
  const Expr* out = changed ? pool_.rebuild(e, all(args)) : e;
  if (out->kind() == ExprKind::floor_div && knows_remainders_ && leaves_no_remainder(out->arg(0), out->arg(1)))
    out = pool_.divide(ExprKind::clean_div, out->arg(0), out->arg(1));
  // a // (a / n) is n.
  if ((out->kind() == ExprKind::floor_div || out->kind() == ExprKind::clean_div) &&
      out->arg(1)->kind() == ExprKind::clean_div && out->arg(1)->arg(0) == out->arg(0))
    out = out->arg(1)->arg(1);
  if (!out->is_boolean() && !out->is_float() && !out->is_integer())
    if (const ValueRange r = range(out); range_is_single(r)) out = pool_.integer(r.lower);
  cache.simplified = out;
  cache.simplified_at = epoch_;
  return out;
}

const Expr* Knowledge::simplify(const Expr* e) {
  const Expr* multiplied_out = pool_.expand(replace(e));
  try {
    const Expr* out = rewrite(multiplied_out);
    return out == multiplied_out ? out : pool_.expand(out);
  } catch (const UserError&) {  // coefficients beyond 64 bits
    return multiplied_out;
  }
}

const Expr* Knowledge::canonical(const Expr* e) {
  if (e->kind() == ExprKind::logical_and || e->kind() == ExprKind::logical_or) {
    std::vector<const Expr*> args;
    for (const Expr* a : e->args()) args.push_back(canonical(a));
    return pool_.connective(e->kind(), std::move(args));
  }
  if (!is_relation(e->kind()) || e->arg(0)->is_float() || e->arg(1)->is_float()) return e;
  const bool turned = e->kind() == ExprKind::gt || e->kind() == ExprKind::ge;
  const ExprKind kind = e->kind() == ExprKind::gt ? ExprKind::lt : e->kind() == ExprKind::ge ? ExprKind::le : e->kind();
  const Expr* difference = pool_.expand(turned ? pool_.sub(e->arg(0), e->arg(1)) : pool_.sub(e->arg(1), e->arg(0)));
  Terms left, right;
  int64_t divisor = 0;
  for (const Term& t : terms_of(difference)) {
    if (t.coefficient == INT64_MIN) return e;
    divisor = std::gcd(divisor, t.coefficient);
  }
  if (divisor == 0) return e;
  for (const Term& t : terms_of(difference)) {
    if (t.coefficient < 0)
      left.push_back({-t.coefficient / divisor, t.rest});
    else
      right.push_back({t.coefficient / divisor, t.rest});
  }
  return pool_.relation(kind, pool_.sum(std::move(left)), pool_.sum(std::move(right)));
}

Knowledge::Linear Knowledge::linear(const Expr* expanded) {
  Terms terms = terms_of(expanded);
  Linear out{nullptr, 1, 0};
  if (terms[0].rest == nullptr) {
    out.constant = terms[0].coefficient;
    terms.erase(terms.begin());
  }
  if (terms.empty()) return out;
  uint64_t divisor = 0;
  for (const Term& t : terms) {
    uint64_t a = divisor;
    uint64_t b = t.coefficient < 0 ? 0 - static_cast<uint64_t>(t.coefficient) : static_cast<uint64_t>(t.coefficient);
    while (b != 0) a = std::exchange(b, a % b);
    divisor = a;
  }
  if (divisor > static_cast<uint64_t>(INT64_MAX)) divisor = 1;
  out.factor = static_cast<int64_t>(divisor);
  if (terms[0].coefficient < 0) out.factor = -out.factor;
  for (Term& t : terms) t.coefficient = checked_mul(t.coefficient / static_cast<int64_t>(divisor), out.factor < 0 ? -1 : 1);
  out.core = pool_.sum(std::move(terms));
  return out;
}

Knowledge::Statement Knowledge::statement(ExprKind relation, const Expr* difference) {
  const Linear l = linear(difference);
  const int64_t target = checked_mul(l.constant, -1);  // factor * core (relation) target
  const int64_t factor = l.factor;
  if (l.core == nullptr) {
    const Expr* decided = pool_.relation(relation, pool_.integer(0), pool_.integer(target));
    return {decided->kind() == ExprKind::true_value ? Statement::always : Statement::never};
  }
  const int64_t size = factor < 0 ? -factor : factor;
  const auto at_most = [&](int64_t limit) -> Statement {  // factor * core <= limit
    const int64_t q = bound_floor_div(limit, size);
    if (factor > 0) return {Statement::at_most, l.core, q};
    return {Statement::at_least, l.core, checked_mul(q, -1)};
  };
  const auto at_least = [&](int64_t limit) -> Statement {
    const int64_t q = bound_ceil_div(limit, size);
    if (factor > 0) return {Statement::at_least, l.core, q};
    return {Statement::at_most, l.core, checked_mul(q, -1)};
  };
  switch (comparison_of(relation)) {
    case Comparison::equal:
    case Comparison::unequal:
      if (floor_remainder(target, size) != 0) return {relation == ExprKind::eq ? Statement::never : Statement::always};
      return {relation == ExprKind::eq ? Statement::equal : Statement::unequal, l.core, floor_quotient(target, factor)};
    case Comparison::less_equal: return at_most(target);
    case Comparison::less: return at_most(checked_add(target, -1));
    case Comparison::greater_equal: return at_least(target);
    case Comparison::greater: return at_least(checked_add(target, 1));
  }
  throw InternalError("a comparison of no kind");
}

std::optional<bool> Knowledge::decide_relation(const Expr* e, Premises* premises) {
  if (e->arg(0)->is_float() || e->arg(1)->is_float())
    return decide_floats(e->kind(), float_range(e->arg(0), premises), float_range(e->arg(1), premises));
  const bool use_facts = premises == nullptr || premises->use_facts;
  const Expr* plain = pool_.sub(e->arg(0), e->arg(1));
  const Expr* difference = use_facts ? simplify(plain) : pool_.expand(replace(plain));
  const Statement s = statement(e->kind(), difference);
  if (s.kind == Statement::always) return true;
  if (s.kind == Statement::never) return false;
  const ValueRange r = bounds(s.core, premises);
  if (s.kind == Statement::at_least) {
    if (r.lower >= s.bound) return true;
    if (r.upper < s.bound) return false;
    return std::nullopt;
  }
  if (s.kind == Statement::at_most) {
    if (r.upper <= s.bound) return true;
    if (r.lower > s.bound) return false;
    return std::nullopt;
  }
  const bool is_equality = s.kind == Statement::equal;
  if (!range_contains(r, s.bound)) return !is_equality;
  if (range_is_single(r)) return is_equality;
  if (!use_facts) return std::nullopt;
  if (const auto fact = facts_.find(s.core); fact != facts_.end())
    if (std::ranges::find(fact->second.excluded, s.bound) != fact->second.excluded.end()) return !is_equality;
  return std::nullopt;
}

// What the parts of a condition decide, each asked with `decide`: of a constant and of not, and, or.
template <class Decide>
static std::optional<bool> decide_by_parts(const Expr* e, Decide&& decide) {
  if (e->kind() == ExprKind::true_value) return true;
  if (e->kind() == ExprKind::false_value) return false;
  if (e->kind() == ExprKind::logical_not) {
    const std::optional<bool> inner = decide(e->arg(0));
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  const bool absorbing = e->kind() == ExprKind::logical_or;
  if (!absorbing && e->kind() != ExprKind::logical_and) return std::nullopt;
  bool all = true;
  for (const Expr* a : e->args()) {
    const std::optional<bool> v = decide(a);
    if (v == absorbing) return absorbing;
    all &= v.has_value();
  }
  return all ? std::optional(!absorbing) : std::nullopt;
}

std::optional<bool> Knowledge::decide_uncached(const Expr* e) {
  if (const std::optional<bool> v = decide_by_parts(e, [this](const Expr* a) { return decide(a); })) return v;
  if (is_relation(e->kind())) {
    try {
      if (const std::optional<bool> v = decide_relation(e)) return v;
    } catch (const UserError&) {
      // The difference of the sides leaves 64 bits: nothing can be said.
    }
  }
  if (const auto known = known_booleans_.find(e); known != known_booleans_.end()) return known->second;
  return std::nullopt;
}

std::optional<bool> Knowledge::decide_under(const Expr* e, Premises& premises) {
  if (premises.use_facts)
    if (const std::optional<bool> known = decide(e)) return known;
  if (!is_relation(e->kind())) return decide_by_parts(e, [&](const Expr* a) { return decide_under(a, premises); });
  try {
    return decide_relation(e, &premises);
  } catch (const UserError&) {  // beyond 64 bits
    return std::nullopt;
  }
}

const Expr* Knowledge::replace_undecided(const Expr* e) {
  if ((e->symbol_mask() & replaced_mask_) == 0) return e;
  if (!e->is_boolean()) return replace(e);
  std::vector<const Expr*> args;
  for (const Expr* a : e->args()) args.push_back(replace_undecided(a));
  return is_relation(e->kind()) ? pool_.relation_as_written(e->kind(), args[0], args[1]) : pool_.rebuild(e, args);
}

std::optional<bool> Knowledge::decide(const Expr* boolean) {
  const Expr* e = replace(boolean);
  Expr::Cache& cache = e->cache();
  if (cache.known_at != epoch_) {
    const std::optional<bool> v = decide_uncached(e);
    cache.known = v ? static_cast<int8_t>(*v) : int8_t{-1};
    cache.known_at = epoch_;
  }
  if (cache.known < 0) return std::nullopt;
  return cache.known != 0;
}

}  // namespace calque
