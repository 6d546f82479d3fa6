#include "calque/sym/shape_env.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/unbacked.h"
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
                               bool unbacked, bool positive) {
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
  Symbol symbol;
  symbol.name = std::move(name);
  symbol.hint = hint;
  symbol.origin = std::move(origin);
  symbol.positive = positive;
  const Expr* node = knowledge.new_symbol(std::move(symbol), unbacked);
  note({.kind = LogRecord::Kind::symbol, .subject = node, .range = range, .text = {}, .origin = origin_at({})});
  knowledge.restrict_symbol(node->symbol_index(), range);
  return SymInt(node);
}

SymFloat ShapeEnv::Impl::declare_float(std::string name, std::optional<double> hint, std::string origin, bool unbacked) {
  by_name.emplace(name, knowledge.symbols().size());
  Symbol symbol;
  symbol.name = std::move(name);
  symbol.float_hint = hint;
  symbol.origin = std::move(origin);
  symbol.is_float = true;
  const Expr* node = knowledge.new_symbol(std::move(symbol), unbacked);
  note({.kind = LogRecord::Kind::symbol, .subject = node, .range = {}, .text = {}, .origin = origin_at({})});
  return SymFloat(node);
}

std::string ShapeEnv::Impl::fresh_name(const char* prefix, size_t& next) {
  std::string name;
  do {
    name = prefix + std::to_string(next++);
  } while (by_name.contains(name));
  return name;
}

const ShapeEnvOptions& ShapeEnv::options() const { return impl_->options; }

SymInt ShapeEnv::create_size(int64_t hint, std::string origin) {
  if (hint < 0) throw UserError("the size " + std::to_string(hint) + " of " + origin + " is negative");
  if (impl_->options.specialize_zero_one && hint <= 1) {
    impl_->note({.kind = LogRecord::Kind::static_size,
                 .subject = nullptr,
                 .range = {},
                 .number = hint,
                 .text = origin,
                 .origin = origin_at({})});
    return hint;
  }
  if (impl_->options.duck_shape)
    if (const auto same = impl_->by_example.find(hint); same != impl_->by_example.end()) {
      const Expr* node = impl_->knowledge.node(same->second);
      impl_->note({.kind = LogRecord::Kind::shared_symbol,
                   .subject = node,
                   .range = {},
                   .number = hint,
                   .text = origin,
                   .origin = origin_at({})});
      return SymInt(node);
    }
  const int64_t lower = impl_->options.specialize_zero_one ? 2 : 0;
  const SymInt out = create_symbol(hint, {lower, ValueRange::unbounded_above}, std::move(origin));
  if (impl_->options.duck_shape) impl_->by_example.emplace(hint, out.expr()->symbol_index());
  return out;
}

SymInt ShapeEnv::create_symbol(int64_t hint, ValueRange range, std::string origin) {
  return impl_->declare(impl_->fresh_name("s", impl_->next_backed), hint, range, std::move(origin), false, range.lower >= 0);
}

SymFloat ShapeEnv::create_float(double hint, std::string origin) {
  return impl_->declare_float(impl_->fresh_name("zf", impl_->next_float), hint, std::move(origin), false);
}

SymInt ShapeEnv::create_unbacked(ValueRange range) {
  const SymInt out = impl_->declare(impl_->fresh_name("u", impl_->next_unbacked), std::nullopt, range, "", true, false);
  if (!fresh_unbacked_ignored() && out.expr() != nullptr) impl_->pending_unbacked.push_back(out.expr()->symbol_index());
  return out;
}

SymInt ShapeEnv::create_unbacked_size() {
  const SymInt out = create_unbacked();
  constrain_range_for_size(out);
  return out;
}

SymFloat ShapeEnv::create_unbacked_float() {
  const SymFloat out = impl_->declare_float(impl_->fresh_name("zuf", impl_->next_unbacked_float), std::nullopt, "", true);
  if (!fresh_unbacked_ignored()) impl_->pending_unbacked.push_back(out.expr()->symbol_index());
  return out;
}

SymBool ShapeEnv::create_unbacked_bool() { return create_unbacked({0, 1}) == 1; }

SymInt ShapeEnv::declare_symbol(std::string name, std::optional<int64_t> hint, ValueRange range, std::string origin) {
  if (name.empty()) throw UserError("a symbol needs a name");
  const bool unbacked = name[0] == 'u';
  if (unbacked && hint) throw UserError("the unbacked symbol " + name + " cannot have an example value");
  const auto known = impl_->by_name.find(name);
  if (known == impl_->by_name.end())
    return impl_->declare(std::move(name), hint, range, std::move(origin), unbacked, !unbacked && range.lower >= 0);
  const std::optional<int64_t> before = symbols()[known->second].hint;
  if (hint && before && *hint != *before)
    throw UserError("the symbol " + name + " has the example value " + std::to_string(*before) + ", not " +
                    std::to_string(*hint));
  if (hint && !before) impl_->knowledge.symbol(known->second).hint = *hint;
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
const std::vector<RuntimeAssert>& ShapeEnv::runtime_asserts() const { return impl_->runtime_asserts; }

std::vector<RuntimeAssert> ShapeEnv::runtime_asserts_of(std::string_view symbol) const {
  std::vector<RuntimeAssert> out;
  std::ranges::copy_if(impl_->runtime_asserts, std::back_inserter(out),
                       [&](const RuntimeAssert& a) { return a.symbol == symbol; });
  return out;
}

void ShapeEnv::freeze() { impl_->frozen = true; }
bool ShapeEnv::frozen() const { return impl_->frozen; }

void ShapeEnv::constrain_range(SymInt value, ValueRange range) {
  if (range_is_empty(range))
    throw UserError(ErrorKind::constraint_violation, "the range for " + value.str() + " is empty: lower " +
                                                         std::to_string(range.lower) + ", upper " +
                                                         std::to_string(range.upper));
  impl_->knowledge.learn_range(impl_->expr(value), range);
}

void ShapeEnv::constrain_range_for_size(SymInt value, std::optional<int64_t> min, std::optional<int64_t> max) {
  const ValueRange wanted{min.value_or(0), max.value_or(ValueRange::unbounded_above)};
  if (range_is_empty(wanted))
    throw UserError(ErrorKind::constraint_violation, "a size cannot be at most " + std::to_string(wanted.upper) +
                                                         " and at least " + std::to_string(wanted.lower));
  const Expr* e = impl_->expr(value);
  if (e->kind() != ExprKind::symbol || !e->has_unbacked()) return;
  // What is said of a size holds as it is said: at most 1 is no more than 1, though tests take a size to be at least 2.
  impl_->knowledge.symbol(e->symbol_index()).size_like = false;
  impl_->knowledge.restrict_symbol(e->symbol_index(), wanted);
  impl_->knowledge.symbol(e->symbol_index()).size_like = true;
}

void ShapeEnv::constrain_unify(SymInt a, SymInt b) {
  const Expr* x = impl_->expr(a);
  const Expr* y = impl_->expr(b);
  if (x == y) return;
  if (x->is_integer() && y->is_integer())
    throw UserError(ErrorKind::constraint_violation, "constrain_unify: " + a.str() + " is not " + b.str());
  if (y->kind() != ExprKind::symbol) std::swap(x, y);
  const bool both_simple = y->kind() == ExprKind::symbol && (x->kind() == ExprKind::symbol || x->is_integer());
  if (!both_simple) throw UserError("constrain_unify takes symbols and numbers, not " + a.str() + " and " + b.str());
  impl_->knowledge.set_replacement(y->symbol_index(), x);
}

ValueRange ShapeEnv::range(SymInt value) const {
  const Expr* e = impl_->expr(value);
  const ValueRange direct = impl_->knowledge.range(e);
  const ValueRange simplified = impl_->knowledge.range(impl_->knowledge.simplify(e));
  return range_intersect(direct, simplified);
}

std::optional<int64_t> ShapeEnv::hint(SymInt value) const {
  const std::optional<Number> v = impl_->hint_of(impl_->expr(value));
  if (!v) return std::nullopt;
  return v->integer;
}

std::optional<bool> ShapeEnv::hint(SymBool value) const {
  const std::optional<Number> v = impl_->hint_of(impl_->expr(value));
  if (!v) return std::nullopt;
  return v->integer != 0;
}

std::optional<double> ShapeEnv::hint(SymFloat value) const {
  const std::optional<Number> v = impl_->hint_of(impl_->expr(value));
  if (!v) return std::nullopt;
  return v->as_double();
}

namespace {

// A symbol that is not among the values may be known to equal an expression of others that are.
std::optional<Number> evaluate_named(ShapeEnv::Impl& impl, const Expr* e, const ShapeEnv::Assignment& values) {
  const auto own = [&](size_t i) -> std::optional<Number> {
    const auto given = std::ranges::find(values, impl.knowledge.symbols()[i].name, &ShapeEnv::Assignment::value_type::first);
    if (given == values.end()) return std::nullopt;
    return given->second;
  };
  return evaluate_expr(e, [&](size_t i) -> std::optional<Number> {
    if (const std::optional<Number> v = own(i)) return v;
    const Expr* replaced = impl.knowledge.replace(impl.knowledge.node(i));
    if (replaced == impl.knowledge.node(i)) return std::nullopt;
    return evaluate_expr(replaced, own);
  });
}

}  // namespace

std::optional<int64_t> ShapeEnv::evaluate(SymInt value, const Assignment& values) const {
  if (value.expr() == nullptr) return value.as_int();
  // Without values only what its symbols stand for can decide it.
  if (values.empty() && value.expr()->symbol_mask() != 0 && impl_->knowledge.replace(value.expr()) == value.expr())
    return std::nullopt;
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

SymBool ShapeEnv::simplify(SymBool value) const {
  if (!value.is_symbolic()) return value;
  return SymBool(impl_->knowledge.simplify(impl_->expr(value)));
}

std::optional<SymInt> ShapeEnv::replacement(std::string_view symbol) const {
  const auto known = impl_->by_name.find(std::string(symbol));
  if (known == impl_->by_name.end()) throw UserError("there is no symbol " + std::string(symbol) + " in this environment");
  const Expr* node = impl_->knowledge.node(known->second);
  const Expr* out = impl_->knowledge.replace(node);
  if (out == node) return std::nullopt;
  return SymInt(out);
}

namespace {

std::shared_ptr<ShapeEnv> env_of_expr(const Expr* e) {
  return e != nullptr && e->env() != nullptr ? e->env()->shared_from_this() : nullptr;
}

}  // namespace

std::shared_ptr<ShapeEnv> env_of(SymInt value) { return env_of_expr(value.expr()); }
std::shared_ptr<ShapeEnv> env_of_float(SymFloat value) { return env_of_expr(value.expr()); }
std::shared_ptr<ShapeEnv> env_of_bool(SymBool value) { return env_of_expr(value.expr()); }

}  // namespace calque
