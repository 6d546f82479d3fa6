#include "sym/equality_constraint.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"

namespace calque {

EquationView::EquationView(ShapeEnv& env, const EqualityConstraint& stated) : env_(env), stated_(stated) {
  for (const auto& [a, b] : stated.equal) {
    const std::string x = find(a.name()), y = find(b.name());
    if (x != y) parents_[x] = y;
  }
  for (const EqualityConstraint::Derived& d : stated.derived) {
    Definition root;
    if (const auto* source = std::get_if<Source>(&d.root)) {
      root = rewrite(source->name());
    } else {
      const SymInt value = std::get<SymInt>(d.root);
      if (value.is_symbolic())
        root.root = value.str();
      else
        root = {"", 0, value.as_int()};
    }
    definitions_[find(d.source.name())] = {root.root, checked_mul(root.multiplier, d.multiplier),
                                           checked_add(checked_mul(root.offset, d.multiplier), d.offset)};
  }
}

std::string EquationView::find(const std::string& source) const {
  const auto at = parents_.find(source);
  return at == parents_.end() ? source : find(at->second);
}

EquationView::Definition EquationView::rewrite(const std::string& source) const {
  const std::string root = find(source);
  const auto at = definitions_.find(root);
  return at == definitions_.end() ? Definition{root} : at->second;
}

bool EquationView::is_equal(const Source& a, const Source& b) const {
  const std::string x = find(a.name()), y = find(b.name());
  const auto relaxed = [&](const std::string& name) {
    return std::ranges::any_of(stated_.relaxed, [&](const Source& s) { return s.name() == name; });
  };
  return relaxed(x) || relaxed(y) || x == y || rewrite(a.name()) == rewrite(b.name());
}

bool EquationView::is_derived(const Source& source, const Source& root, const Expr* expr, size_t symbol) const {
  int64_t multiplier = 0, offset = 0;
  for (const Term& t : terms_of(expr)) {
    if (t.rest == nullptr)
      offset = t.coefficient;
    else if (t.rest->kind() == ExprKind::symbol && t.rest->symbol_index() == symbol)
      multiplier = t.coefficient;
    else
      return false;  // only such equations can be stated
  }
  const Definition own = rewrite(source.name());
  Definition wanted = rewrite(root.name());
  wanted.offset = checked_add(checked_mul(wanted.offset, multiplier), offset);
  wanted.multiplier = checked_mul(wanted.multiplier, multiplier);
  return own == wanted;
}

std::vector<EquationView::Broken> EquationView::apply(const std::vector<Placeholder>& placeholders) const {
  const auto value_of = [&](const Source& source) {
    for (const Placeholder& p : placeholders)
      if (p.source.name() == source.base())
        if (const auto* t = std::get_if<TensorGeometry>(&p.value); t != nullptr && source.dimension() < t->sizes.size())
          return t->sizes[source.dimension()];
    throw UserError("an equation was stated about " + source.name() + ", which is no input's size");
  };
  const auto example = [&](SymInt v) {
    const std::optional<int64_t> hint = env_.hint(v);
    return hint ? std::to_string(*hint) : v.str();
  };
  std::vector<Broken> out;
  for (const auto& [a, b] : stated_.equal) {
    const SymInt x = value_of(a), y = value_of(b);
    if (!guard(x == y)) out.push_back({a.name() + " = " + example(x) + " is not equal to " + b.name() + " = " + example(y)});
  }
  for (const EqualityConstraint::Derived& d : stated_.derived) {
    const SymInt x = value_of(d.source);
    SymInt root;
    std::string name;
    if (const auto* source = std::get_if<Source>(&d.root)) {
      root = value_of(*source);
      name = source->name();
      for (const auto& [known, debug] : env_.impl().debug_names)
        if (known == source->name()) name = debug;
    } else {
      root = std::get<SymInt>(d.root);
      name = root.str();
      if (const Expr* e = root.expr(); e != nullptr && e->kind() == ExprKind::symbol)
        if (const auto sources = env_.impl().sources.find(e->symbol_index()); sources != env_.impl().sources.end())
          name = sources->second[0].name();
    }
    if (guard(x == root * d.multiplier + d.offset)) continue;
    std::string relation = d.multiplier == 1 ? name : std::to_string(d.multiplier) + "*" + name;
    if (d.offset != 0) relation += (d.offset < 0 ? " - " : " + ") + std::to_string(std::abs(d.offset));
    out.push_back({"Expected input " + d.source.name() + " to be equal to " + relation + ", where " + name + " = " +
                   example(root) + ", but got " + example(x)});
  }
  return out;
}

}  // namespace calque
