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
    for (const Expr* a : at->args()) todo.push_back(a);
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

}  // namespace

void Knowledge::restrict_symbol(size_t symbol, ValueRange range) {
  Symbol& s = symbols_[symbol];
  // Data that is a size is never learnt to be 0 or 1: size-oblivious tests take it to be at least 2.
  if (s.size_like && range.upper < 2) range.upper = 2;
  const ValueRange before = s.range;
  const ValueRange both = range_intersect(before, range);
  if (both.lower == s.range.lower && both.upper == s.range.upper) return;
  const std::string name = s.origin.empty() ? s.name : s.name + " (" + s.origin + ")";
  if (range_is_empty(both))
    throw UserError(ErrorKind::constraint_violation,
                    "the range " + str(range) + " contradicts what is known of " + name + ": " + str(s.range));
  if (s.hint && !range_contains(both, *s.hint))
    throw UserError(ErrorKind::constraint_violation,
                    "the example value " + std::to_string(*s.hint) + " of " + name + " is outside the range " + str(range));
  s.range = both;
  ++epoch_;
  if (listener_ != nullptr) listener_->narrowed(symbol, before);
  if (range_is_single(both)) set_replacement(symbol, pool_.integer(both.lower));
}

void Knowledge::learn(const Expr* boolean) {
  const Expr* e = replace(boolean);
  if (e->kind() == ExprKind::true_value || e->kind() == ExprKind::false_value) return;
  if (e->kind() == ExprKind::logical_and) {
    for (const Expr* a : e->args()) learn(a);
  } else if (e->kind() == ExprKind::logical_not) {
    if (e->arg(0)->kind() == ExprKind::logical_or)
      for (const Expr* a : e->arg(0)->args()) learn(pool_.logical_not(a));
  } else if (is_relation(e->kind())) {
    if (!e->arg(0)->is_float() && !e->arg(1)->is_float()) {
      learn_relation(e);
    } else if (e->kind() == ExprKind::eq) {  // only a float symbol itself can be replaced
      const bool left = e->arg(0)->kind() == ExprKind::symbol;
      const Expr* symbol = e->arg(left ? 0 : 1);
      if (symbol->kind() == ExprKind::symbol && symbol->is_float() && only_input_data(e->arg(left ? 1 : 0)))
        set_replacement(symbol->symbol_index(), e->arg(left ? 1 : 0));
    }
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
    case Statement::unequal: {
      facts_[s.core].excluded.push_back(s.bound);
      ++epoch_;
      // At an end of what was known it moves the end.
      const ValueRange before = range(s.core), now = bounds(s.core);
      if (now.lower > before.lower || now.upper < before.upper) learn_core_range(s.core, now);
      return;
    }
    case Statement::at_least: learn_core_range(s.core, {s.bound, ValueRange::unbounded_above}); return;
    case Statement::at_most: learn_core_range(s.core, {ValueRange::unbounded_below, s.bound}); return;
    case Statement::equal:
      learn_core_range(s.core, {s.bound, s.bound});
      if (has_kind(s.core, {ExprKind::mod, ExprKind::python_mod}))
        knows_remainders_ |= s.bound == 0;
      else
        solve(e, difference);
      return;
  }
}

void Knowledge::learn_range(const Expr* e, ValueRange range) {
  const Linear l = linear(simplify(e));
  if (l.core == nullptr) {
    if (!range_contains(range, l.constant))
      throw UserError(ErrorKind::constraint_violation,
                      e->str() + " is " + std::to_string(l.constant) + ", outside the range " + str(range));
    return;
  }
  const ValueRange moved = range_add(range, range_negate(range_of_integer(l.constant)));
  const ValueRange core = divide_range(moved, l.factor);
  if (range_is_empty(core) || range_is_empty(range_intersect(core, bounds(l.core))))
    throw UserError(ErrorKind::constraint_violation,
                    "the range " + str(range) + " contradicts what is known of " + e->str() + ": " + str(this->range(e)));
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
    const bool is_quotient = x->kind() == ExprKind::floor_div && terms.size() > 1;
    if (x->kind() != ExprKind::symbol && !is_quotient) continue;
    ValueRange others{0, 0};
    bool only_here = true;
    for (size_t j = 0; j < terms.size(); ++j) {
      if (j == i) continue;
      if (!is_quotient && (terms[j].rest->symbol_mask() & x->symbol_mask()) != 0) {
        const std::vector<size_t> free = free_symbols(terms[j].rest);
        only_here &= !std::ranges::binary_search(free, x->symbol_index());
      }
      others = range_add(others, range_scale(this->range(terms[j].rest), terms[j].coefficient));
    }
    // As PyTorch solves for a symbol: where that would divide others, it leaves the symbol's range alone and defers.
    if (simple_replacements_only_ && !is_quotient)
      for (size_t j = 0; j < terms.size(); ++j)
        only_here &= floor_remainder(terms[j].coefficient, terms[i].coefficient) == 0;
    if (!only_here) continue;
    const ValueRange own = divide_range(range_add(range, range_negate(others)), terms[i].coefficient);
    if (range_is_empty(own)) continue;
    if (is_quotient)
      refine(x, own);
    else
      restrict_symbol(x->symbol_index(), own);
  }

  if (terms.size() != 1) return;
  if (core->kind() == ExprKind::floor_div && core->arg(1)->is_integer() && core->arg(1)->integer() > 0) {
    // a // n in [l, u] says a in [n*l, n*u + n - 1].
    const int64_t n = core->arg(1)->integer();
    const ValueRange scaled = range_scale(range, n);
    const ValueRange top = range_add(scaled, range_of_integer(n - 1));
    learn_range(core->arg(0), {scaled.lower, top.upper});
  } else if (core->kind() == ExprKind::floor_div && this->range(core->arg(1)).lower >= 0) {
    // The same for n in a range; it is not zero, or the division would be an error.
    ValueRange n = this->range(core->arg(1));
    n.lower = std::max<int64_t>(n.lower, 1);
    const ValueRange above = range_mul(range_add({range.upper, range.upper}, {1, 1}), n);
    const ValueRange top = range.upper == ValueRange::unbounded_above ? ValueRange{} : range_add(above, {-1, -1});
    const ValueRange bottom =
        range.lower == ValueRange::unbounded_below ? ValueRange{} : range_mul({range.lower, range.lower}, n);
    learn_range(core->arg(0), {bottom.lower, top.upper});
  } else if (core->kind() == ExprKind::max && range.upper != ValueRange::unbounded_above) {
    for (const Expr* a : core->args()) learn_range(a, {ValueRange::unbounded_below, range.upper});
  } else if (core->kind() == ExprKind::min && range.lower != ValueRange::unbounded_below) {
    for (const Expr* a : core->args()) learn_range(a, {range.lower, ValueRange::unbounded_above});
  }
}

// Data that came with the inputs exists from the start; other data may not exist yet where a symbol is used.
bool Knowledge::only_input_data(const Expr* e) const {
  if (!e->has_unbacked()) return true;
  return std::ranges::all_of(free_symbols(e), [&](size_t i) { return !nodes_[i]->has_unbacked() || symbols_[i].is_input; });
}

// The relation's sides are equal, difference == 0: one of its symbols may now stand for the rest. Tensor data that equals
// something known first; else the symbol with the largest example, then the last name. A symbol is never replaced by
// tensor data, which may not exist yet where the symbol is used.
void Knowledge::solve(const Expr* relation, const Expr* difference) {
  for (const bool left : {true, false}) {
    const Expr* symbol = relation->arg(left ? 0 : 1);
    const Expr* other = relation->arg(left ? 1 : 0);
    if (symbol->kind() == ExprKind::symbol && symbol->has_unbacked() && only_input_data(other)) {
      set_replacement(symbol->symbol_index(), other);
      return;
    }
  }
  if (has_kind(difference, {ExprKind::floor_div, ExprKind::clean_div})) return;
  const std::vector<size_t> free = free_symbols(difference);
  if (free.empty() || free.size() > most_symbols_to_solve) return;
  const auto weight = [&](size_t i) {
    return std::pair(nodes_[i]->has_unbacked() ? INT64_MAX : symbols_[i].hint.value_or(INT64_MAX), symbols_[i].name);
  };
  const size_t i = *std::ranges::max_element(free, {}, weight);
  int64_t coefficient = 0;
  Terms others;
  for (const Term& t : terms_of(difference)) {
    if (t.rest == nodes_[i]) {
      coefficient = t.coefficient;
      continue;
    }
    if (t.rest != nullptr && (t.rest->symbol_mask() & nodes_[i]->symbol_mask()) != 0 &&
        std::ranges::binary_search(free_symbols(t.rest), i))
      return;
    others.push_back(t);
  }
  if (coefficient == 0) return;
  for (Term& t : others) {
    if (floor_remainder(t.coefficient, coefficient) != 0) return;
    t.coefficient = checked_mul(floor_quotient(t.coefficient, coefficient), -1);
  }
  const Expr* target = pool_.sum(std::move(others));
  if (target->has_unbacked()) return;
  set_replacement(i, target);
}

// A symbol, or a multiple of one plus a number.
static bool is_simple(const Expr* e) {
  size_t symbols = 0;
  for (const Term& t : terms_of(e)) {
    if (t.rest == nullptr) continue;
    if (t.rest->kind() != ExprKind::symbol || ++symbols > 1) return false;
  }
  return symbols == 1;
}

bool Knowledge::may_replace(size_t symbol, const Expr* target) const {
  if (replacements_[symbol] != nullptr || target == nodes_[symbol]) return false;
  if (simple_replacements_only_ && !is_simple(target)) return false;
  return (target->symbol_mask() & nodes_[symbol]->symbol_mask()) == 0 ||
         !std::ranges::binary_search(free_symbols(target), symbol);
}

void Knowledge::set_replacement(size_t symbol, const Expr* target) {
  target = replace(target);
  if (!may_replace(symbol, target)) return;

  // The symbol's own range must not be forgotten: what replaces it has to imply it.
  if (!target->is_float()) {
    const ValueRange own = symbols_[symbol].range;
    if (target->is_integer()) {
      restrict_symbol(symbol, range(target));
      if (replacements_[symbol] != nullptr) return;  // one value was left
      if (!is_subset(range(target), own)) return;
    } else {
      if (!is_subset(range(target), own) && free_symbols(target).size() == 1) learn_range(target, own);
      target = replace(target);
      restrict_symbol(symbol, range(target));
      if (replacements_[symbol] != nullptr || !is_subset(range(target), own)) return;
    }
    // Being a size passes on by plain equality only; otherwise a size must still look like one to size-oblivious tests.
    if (target->kind() == ExprKind::symbol) {
      Symbol& other = symbols_[target->symbol_index()];
      other.size_like = symbols_[symbol].size_like = other.size_like || symbols_[symbol].size_like;
    }
    if (symbols_[symbol].size_like) {
      Premises oblivious{.size_oblivious = true};
      if (range(target, &oblivious).lower < 2) return;
    }
  }
  replacements_[symbol] = target;
  replaced_mask_ |= nodes_[symbol]->symbol_mask();
  ++replacement_epoch_;
  ++epoch_;
  remap_facts();
  if (listener_ != nullptr) listener_->replaced(symbol, target);
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
  for (const auto& [e, value] : old_booleans) known_booleans_[e] = value;
}

}  // namespace calque
