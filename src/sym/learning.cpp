// What a condition that holds teaches: facts, narrower ranges, and symbols that stand for expressions.
#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "sym/knowledge.h"
#include "sym/range.h"

namespace calque {

namespace {

constexpr size_t most_symbols_to_solve = 5;

bool has_kind(const Expr* e, std::initializer_list<ExprKind> kinds) {
  std::vector<const Expr*> todo{e};
  std::unordered_set<const Expr*> seen;
  while (!todo.empty()) {
    const Expr* at = todo.back();
    todo.pop_back();
    if (!seen.insert(at).second) continue;
    if (std::ranges::find(kinds, at->kind()) != kinds.end()) return true;
    for (const Expr* a : at->args())
      todo.push_back(a);
  }
  return false;
}

// What the range of a * x is divided by a.
ValueRange divide_range(ValueRange r, int64_t a) {
  if (a < 0) {
    r = range_negate(r);
    a = -a;
  }
  return {bound_ceil_div(r.lower, a), bound_floor_div(r.upper, a)};
}

bool is_subset(ValueRange inner, ValueRange outer) { return inner.lower >= outer.lower && inner.upper <= outer.upper; }

std::string range_text(ValueRange r) {
  return "[" + (r.lower == ValueRange::unbounded_below ? "-inf" : std::to_string(r.lower)) + ", " +
         (r.upper == ValueRange::unbounded_above ? "inf" : std::to_string(r.upper)) + "]";
}

}  // namespace

void Knowledge::restrict_symbol(size_t symbol, ValueRange range) {
  Symbol& s = symbols_[symbol];
  const ValueRange both = range_intersect(s.range, range);
  if (both.lower == s.range.lower && both.upper == s.range.upper) return;
  const std::string name = s.origin.empty() ? s.name : s.name + " (" + s.origin + ")";
  if (range_is_empty(both))
    throw UserError(ErrorKind::constraint_violation,
                    "the range " + range_text(range) + " contradicts what is known of " + name + ": " + range_text(s.range));
  if (s.hint && !range_contains(both, *s.hint))
    throw UserError(ErrorKind::constraint_violation, "the example value " + std::to_string(*s.hint) + " of " + name +
                                                         " is outside the range " + range_text(range));
  s.range = both;
  ++epoch_;
  if (range_is_single(both)) set_replacement(symbol, pool_.integer(both.lower));
}

void Knowledge::learn(const Expr* boolean) {
  const Expr* e = replace(boolean);
  switch (e->kind()) {
    case ExprKind::true_value:
    case ExprKind::false_value: return;
    case ExprKind::logical_and:
      for (const Expr* a : e->args())
        learn(a);
      break;
    case ExprKind::logical_not:
      if (e->arg(0)->kind() == ExprKind::logical_or)
        for (const Expr* a : e->arg(0)->args())
          learn(pool_.logical_not(a));
      break;
    default:
      if (is_relation(e->kind()) && !e->arg(0)->is_float() && !e->arg(1)->is_float()) learn_relation(e);
      break;
  }
  known_booleans_[e] = true;
  known_booleans_[pool_.logical_not(e)] = false;
  ++epoch_;
}

void Knowledge::learn_relation(const Expr* e) {
  const Expr* lhs = e->arg(0);
  const Expr* rhs = e->arg(1);
  const Expr* difference;
  Statement s;
  try {
    difference = simplify(pool_.sub(lhs, rhs));  // before it is known to be zero
    s = statement(e->kind(), difference);
  } catch (const UserError&) {
    return;  // beyond 64 bits: only the condition itself is remembered
  }
  switch (s.kind) {
    case Statement::always:
    case Statement::never: return;
    case Statement::unequal: facts_[s.core].excluded.push_back(s.bound); return;
    case Statement::at_least: learn_core_range(s.core, {s.bound, ValueRange::unbounded_above}); return;
    case Statement::at_most: learn_core_range(s.core, {ValueRange::unbounded_below, s.bound}); return;
    case Statement::equal:
      learn_core_range(s.core, {s.bound, s.bound});
      if (has_kind(s.core, {ExprKind::mod, ExprKind::python_mod}))
        knows_remainders_ |= s.bound == 0;
      else
        solve(difference);
      return;
  }
}

void Knowledge::learn_range(const Expr* e, ValueRange range) {
  const Linear l = linear(simplify(e));
  if (l.core == nullptr) {
    if (!range_contains(range, l.constant))
      throw UserError(ErrorKind::constraint_violation,
                      e->str() + " is " + std::to_string(l.constant) + ", outside the range " + range_text(range));
    return;
  }
  const ValueRange moved = range_add(range, range_negate(range_of_integer(l.constant)));
  const ValueRange core = divide_range(moved, l.factor);
  if (range_is_empty(core) || range_is_empty(range_intersect(core, bounds(l.core))))
    throw UserError(ErrorKind::constraint_violation, "the range " + range_text(range) + " contradicts what is known of " +
                                                         e->str() + ": " + range_text(this->range(e)));
  learn_core_range(l.core, core);
  ++epoch_;
}

void Knowledge::learn_core_range(const Expr* core, ValueRange range) {
  if (core->kind() != ExprKind::symbol) {
    Fact& fact = facts_[core];
    const ValueRange both = range_intersect(fact.range, range);
    if (!range_is_empty(both)) fact.range = both;
    ++epoch_;
  }
  refine(core, range);
}

void Knowledge::refine(const Expr* core, ValueRange range) {
  const Terms terms = terms_of(core);
  for (size_t i = 0; i < terms.size(); ++i) {
    const Expr* x = terms[i].rest;
    if (x->kind() != ExprKind::symbol) continue;
    ValueRange others{0, 0};
    bool only_here = true;
    for (size_t j = 0; j < terms.size(); ++j) {
      if (j == i) continue;
      if ((terms[j].rest->symbol_mask() & x->symbol_mask()) != 0) {
        const std::vector<size_t> free = free_symbols(terms[j].rest);
        only_here &= !std::ranges::binary_search(free, x->symbol_index());
      }
      others = range_add(others, range_scale(this->range(terms[j].rest), terms[j].coefficient));
    }
    if (!only_here) continue;
    const ValueRange own = divide_range(range_add(range, range_negate(others)), terms[i].coefficient);
    if (!range_is_empty(own)) restrict_symbol(x->symbol_index(), own);
  }

  if (terms.size() != 1) return;
  if (core->kind() == ExprKind::floor_div && core->arg(1)->is_integer() && core->arg(1)->integer() > 0) {
    // a // n in [l, u] says a in [n*l, n*u + n - 1].
    const int64_t n = core->arg(1)->integer();
    const ValueRange scaled = range_scale(range, n);
    const ValueRange top = range_add(scaled, range_of_integer(n - 1));
    learn_range(core->arg(0), {scaled.lower, top.upper});
  } else if (core->kind() == ExprKind::max && range.upper != ValueRange::unbounded_above) {
    for (const Expr* a : core->args())
      learn_range(a, {ValueRange::unbounded_below, range.upper});
  } else if (core->kind() == ExprKind::min && range.lower != ValueRange::unbounded_below) {
    for (const Expr* a : core->args())
      learn_range(a, {range.lower, ValueRange::unbounded_above});
  }
}

// difference == 0: one of its symbols may now stand for the rest. Preferred is the one with the largest example, then the
// youngest; values from tensor data first. Nothing is ever replaced by tensor data, which may not exist yet where
// the symbol is used.
void Knowledge::solve(const Expr* difference) {
  if (has_kind(difference, {ExprKind::floor_div, ExprKind::clean_div})) return;
  std::vector<size_t> free = free_symbols(difference);
  if (free.size() > most_symbols_to_solve) return;
  const auto weight = [&](size_t i) {
    return nodes_[i]->has_unbacked() ? INT64_MAX : symbols_[i].hint.value_or(INT64_MAX - 1);
  };
  std::ranges::sort(free, [&](size_t a, size_t b) { return std::pair(weight(a), a) > std::pair(weight(b), b); });
  for (const size_t i : free) {
    int64_t coefficient = 0;
    bool only_here = true;
    Terms others;
    for (const Term& t : terms_of(difference)) {
      if (t.rest == nodes_[i]) {
        coefficient = t.coefficient;
        continue;
      }
      if (t.rest != nullptr && (t.rest->symbol_mask() & nodes_[i]->symbol_mask()) != 0)
        only_here &= !std::ranges::binary_search(free_symbols(t.rest), i);
      others.push_back(t);
    }
    if (coefficient == 0 || !only_here) continue;
    bool divides = true;
    for (Term& t : others) {
      divides &= floor_remainder(t.coefficient, coefficient) == 0;
      t.coefficient = checked_mul(floor_quotient(t.coefficient, coefficient), -1);
    }
    if (!divides) continue;
    const Expr* target = pool_.sum(std::move(others));
    if (target->has_unbacked()) continue;
    set_replacement(i, target);
    return;
  }
}

void Knowledge::set_replacement(size_t symbol, const Expr* target) {
  target = replace(target);
  if (replacements_[symbol] != nullptr || target == nodes_[symbol]) return;
  const uint64_t bit = nodes_[symbol]->symbol_mask();
  if ((target->symbol_mask() & bit) != 0 && std::ranges::binary_search(free_symbols(target), symbol)) return;

  // The symbol's own range must not be forgotten: what replaces it has to imply it.
  if (!target->is_integer()) {
    const ValueRange own = symbols_[symbol].range;
    if (!is_subset(range(target), own) && free_symbols(target).size() == 1) learn_range(target, own);
    target = replace(target);
    restrict_symbol(symbol, range(target));
    if (replacements_[symbol] != nullptr || !is_subset(range(target), own)) return;
  }
  replacements_[symbol] = target;
  replaced_mask_ |= bit;
  ++replacement_epoch_;
  ++epoch_;
  remap_facts();
}

void Knowledge::remap_facts() {
  std::vector<std::pair<const Expr*, Fact>> old_facts;
  for (auto it = facts_.begin(); it != facts_.end();) {
    if (replace(it->first) == it->first) {
      ++it;
    } else {
      old_facts.emplace_back(it->first, std::move(it->second));
      it = facts_.erase(it);
    }
  }
  std::ranges::sort(old_facts, {}, [](const auto& f) { return f.first->id(); });
  for (const auto& [core, fact] : old_facts) {
    const Linear l = linear(pool_.expand(replace(core)));
    if (l.core == nullptr) continue;
    Fact& merged = facts_[l.core];
    const ValueRange moved = range_add(fact.range, range_negate(range_of_integer(l.constant)));
    const ValueRange both = range_intersect(merged.range, divide_range(moved, l.factor));
    if (!range_is_empty(both)) merged.range = both;
    for (const int64_t v : fact.excluded) {
      int64_t distance;
      if (__builtin_sub_overflow(v, l.constant, &distance)) continue;
      if (floor_remainder(distance, l.factor) == 0) merged.excluded.push_back(floor_quotient(distance, l.factor));
    }
  }
  std::vector<std::pair<const Expr*, bool>> old_booleans;
  for (const auto& [e, value] : known_booleans_)
    if (replace(e) != e) old_booleans.emplace_back(replace(e), value);
  for (const auto& [e, value] : old_booleans)
    known_booleans_[e] = value;
}

}  // namespace calque
