#include "calque/sym/shape_env.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"
#include "sym/evaluate.h"
#include "sym/range.h"

namespace calque {

namespace {

std::string described(const std::string& name, const std::string& origin) {
  return origin.empty() ? name : name + " (" + origin + ")";
}

}  // namespace

ShapeEnv::ShapeEnv(ShapeEnvOptions options) : impl_(std::make_unique<Impl>(this, options)) {}
ShapeEnv::~ShapeEnv() = default;

std::shared_ptr<ShapeEnv> ShapeEnv::make(ShapeEnvOptions options) {
  return std::shared_ptr<ShapeEnv>(new ShapeEnv(options));
}

SymInt ShapeEnv::Impl::declare(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin,
                               bool unbacked, bool positive, bool keeps_zero_one) {
  const std::string who = described(name, origin);
  if (range_is_empty(range))
    throw UserError(ErrorKind::constraint_violation, "the range of symbol " + who + " is empty: lower " +
                                                         std::to_string(range.lower) + ", upper " +
                                                         std::to_string(range.upper));
  if (hint && !range_contains(range, *hint))
    throw UserError(ErrorKind::constraint_violation, "the example value " + std::to_string(*hint) + " of symbol " + who +
                                                         " is outside its range [" + std::to_string(range.lower) + ", " +
                                                         std::to_string(range.upper) + "]");
  by_name.emplace(name, knowledge.symbols().size());
  const Expr* node =
      knowledge.new_symbol({std::move(name), hint, ValueRange{}, std::move(origin), keeps_zero_one, positive}, unbacked);
  knowledge.restrict_symbol(node->symbol_index(), range);
  return SymInt(node);
}

SymInt ShapeEnv::create_size(int64_t hint, std::string origin) {
  if (hint < 0) throw UserError("the size " + std::to_string(hint) + " of " + origin + " is negative");
  if (impl_->options.specialize_zero_one && hint <= 1) return hint;
  if (impl_->options.duck_shape)
    if (const auto same = impl_->by_example.find(hint); same != impl_->by_example.end())
      return SymInt(impl_->knowledge.node(same->second));
  const int64_t lower = impl_->options.specialize_zero_one ? 2 : 0;
  const SymInt out = create_symbol(hint, {lower, ValueRange::unbounded_above}, std::move(origin));
  if (impl_->options.duck_shape) impl_->by_example.emplace(hint, out.expr()->symbol_index());
  return out;
}

SymInt ShapeEnv::create_symbol(int64_t hint, ValueRange range, std::string origin, bool keeps_zero_one) {
  std::string name;
  do {
    name = "s" + std::to_string(impl_->next_backed++);
  } while (impl_->by_name.contains(name));
  return impl_->declare(std::move(name), hint, range, std::move(origin), false, range.lower >= 0, keeps_zero_one);
}

SymInt ShapeEnv::create_unbacked(ValueRange range) {
  std::string name;
  do {
    name = "u" + std::to_string(impl_->next_unbacked++);
  } while (impl_->by_name.contains(name));
  return impl_->declare(std::move(name), std::nullopt, range, "", true, false, false);
}

SymInt ShapeEnv::declare_symbol(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin) {
  if (name.empty()) throw UserError("a symbol needs a name");
  const bool unbacked = name[0] == 'u';
  if (unbacked && hint) throw UserError("the unbacked symbol " + name + " cannot have an example value");
  const auto known = impl_->by_name.find(name);
  if (known == impl_->by_name.end())
    return impl_->declare(std::move(name), hint, range, std::move(origin), unbacked, !unbacked && range.lower >= 0, false);
  const std::optional<int64_t> before = symbols()[known->second].hint;
  if (hint && before && *hint != *before)
    throw UserError("the symbol " + name + " has the example value " + std::to_string(*before) + ", not " +
                    std::to_string(*hint));
  if (hint && !before) impl_->knowledge.set_hint(known->second, *hint);
  impl_->knowledge.restrict_symbol(known->second, range);
  return SymInt(impl_->knowledge.node(known->second));
}

const std::vector<Symbol>& ShapeEnv::symbols() const { return impl_->knowledge.symbols(); }

const Symbol& ShapeEnv::symbol(std::string_view name) const {
  const auto known = impl_->by_name.find(std::string(name));
  if (known == impl_->by_name.end()) throw UserError("there is no symbol " + std::string(name) + " in this environment");
  return symbols()[known->second];
}

const std::vector<Guard>& ShapeEnv::guards() const { return impl_->guards; }
const std::vector<SymBool>& ShapeEnv::deferred_asserts() const { return impl_->deferred_asserts; }

void ShapeEnv::constrain_range(SymInt value, ValueRange range) {
  if (range_is_empty(range))
    throw UserError(ErrorKind::constraint_violation, "the range for " + value.str() + " is empty: lower " +
                                                         std::to_string(range.lower) + ", upper " +
                                                         std::to_string(range.upper));
  impl_->knowledge.learn_range(impl_->expr(value), range);
}

ValueRange ShapeEnv::range(SymInt value) const {
  const Expr* e = impl_->expr(value);
  const ValueRange direct = impl_->knowledge.range(e);
  const ValueRange simplified = impl_->knowledge.range(impl_->knowledge.simplify(e));
  return range_intersect(direct, simplified);
}

std::optional<int64_t> ShapeEnv::hint(SymInt value) const {
  const std::optional<Number> v =
      evaluate_expr(impl_->expr(value), [&](size_t i) { return impl_->knowledge.symbols()[i].hint; });
  if (!v) return std::nullopt;
  return v->integer;
}

namespace {

// A symbol that is not among the values may be known to equal an expression of others that are.
std::optional<Number> evaluate_named(ShapeEnv::Impl& impl, const Expr* e, const ShapeEnv::Assignment& values) {
  const auto own = [&](size_t i) -> std::optional<int64_t> {
    const auto given = std::ranges::find(values, impl.knowledge.symbols()[i].name, &ShapeEnv::Assignment::value_type::first);
    if (given == values.end()) return std::nullopt;
    return given->second;
  };
  return evaluate_expr(e, [&](size_t i) -> std::optional<int64_t> {
    if (const std::optional<int64_t> v = own(i)) return v;
    const Expr* replaced = impl.knowledge.replace(impl.knowledge.node(i));
    if (replaced == impl.knowledge.node(i)) return std::nullopt;
    const std::optional<Number> v = evaluate_expr(replaced, own);
    if (!v) return std::nullopt;
    return v->integer;
  });
}

}  // namespace

std::optional<int64_t> ShapeEnv::evaluate(SymInt value, const Assignment& values) const {
  if (value.expr() == nullptr) return value.as_int();
  const std::optional<Number> v = evaluate_named(*impl_, value.expr(), values);
  if (!v) return std::nullopt;
  return v->integer;
}

std::optional<bool> ShapeEnv::evaluate(SymBool value, const Assignment& values) const {
  if (!value.is_symbolic()) return value.plain();
  const std::optional<Number> v = evaluate_named(*impl_, value.expr(), values);
  if (!v) return std::nullopt;
  return v->integer != 0;
}

SymInt ShapeEnv::simplify(SymInt value) const {
  if (!value.is_symbolic()) return value;
  return SymInt(impl_->knowledge.simplify(impl_->expr(value)));
}

std::optional<SymInt> ShapeEnv::replacement(std::string_view symbol) const {
  const auto known = impl_->by_name.find(std::string(symbol));
  if (known == impl_->by_name.end()) throw UserError("there is no symbol " + std::string(symbol) + " in this environment");
  const Expr* node = impl_->knowledge.node(known->second);
  const Expr* out = impl_->knowledge.replace(node);
  if (out == node) return std::nullopt;
  return SymInt(out);
}

std::shared_ptr<ShapeEnv> env_of(SymInt value) {
  const Expr* e = value.expr();
  return e != nullptr && e->env() != nullptr ? e->env()->shared_from_this() : nullptr;
}

}  // namespace calque
