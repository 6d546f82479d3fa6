#include "calque/sym/produce_guards.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"
#include "sym/equality_constraint.h"
#include "sym/evaluate.h"
#include "sym/guard_checks.h"
#include "sym/linear_text.h"
#include "sym/python_print.h"
#include "sym/range.h"

namespace calque {

struct ProducedGuards::Impl {
  // A check in a form that can be run: an input's value equals an expression, a condition holds, a symbol is in range.
  struct Runnable {
    const Expr* expr = nullptr;
    std::string source;
    size_t symbol = 0;
    ValueRange range;
  };

  std::shared_ptr<ShapeEnv> env;
  std::vector<Source> inputs;
  std::vector<InputCheck> checks;
  std::vector<Runnable> runnables;
  std::vector<std::pair<std::string, int64_t>> fixed;  // sizes that are plain integers, where no check says so
  std::vector<std::string> warnings;
  std::string violations;
  std::vector<size_t> symbols;  // in the order in which inputs bind them
  std::map<size_t, std::vector<Source>> symbol_to_source;
  std::optional<DimConstraints> dim_constraints;
};

namespace {

struct Violation {
  bool warn_only;
  std::string name;
  std::string message;
};

class Producer {
 public:
  Producer(ShapeEnv& env, const GuardsRequest& request)
      : env_(env), impl_(env.impl()), request_(request), out_(std::make_shared<ProducedGuards::Impl>()) {
    out_->env = env.shared_from_this();
    if (request.equalities != nullptr) equations_ = std::make_unique<EquationView>(env, *request.equalities);
  }

  std::shared_ptr<ProducedGuards::Impl> run(const std::vector<Placeholder>& placeholders) {
    for (const auto& [symbol, sources] : impl_.sources)
      for (const Source& source : sources) source_to_symbol_[source.name()] = symbol;
    if (request_.equalities != nullptr) check_equations(placeholders);
    for (const Placeholder& p : placeholders) track(p);
    std::set<size_t> marked_dynamic;
    for (const auto& [symbol, constraints] : constraints_) marked_dynamic.insert(symbol);
    out_->dim_constraints.emplace(env_, out_->symbol_to_source, marked_dynamic, impl_.debug_names);
    if (!request_.simplified)
      for (const auto& [source, expr] : inputs_) add_equality(source, expr);
    for (const Guard& g : env_.guards()) add_guard(g);
    for (const RuntimeAssert& a : env_.runtime_asserts())
      if (a.symbol.empty()) solve_assert(a);
    for (const size_t symbol : out_->symbols) add_range(symbol);
    finish();
    return out_;
  }

 private:
  std::string debug_name(const Source& source) const {
    const auto at = std::ranges::find(impl_.debug_names, source.name(), &DimConstraints::DebugNames::value_type::first);
    return at == impl_.debug_names.end() ? source.name() : at->second;
  }

  const std::vector<Source>& sources_of(size_t symbol) const {
    if (const auto at = out_->symbol_to_source.find(symbol); at != out_->symbol_to_source.end()) return at->second;
    if (const auto at = impl_.sources.find(symbol); at != impl_.sources.end() && !at->second.empty()) return at->second;
    throw UserError("the symbol " + env_.symbols()[symbol].name +
                    " is no input's size, stride or value, but a guard depends on it");
  }

  std::string text(const Expr* e) const {
    return python_text(e, [&](size_t symbol) { return sources_of(symbol)[0].name(); });
  }

  void check_equations(const std::vector<Placeholder>& placeholders) {
    for (const EquationView::Broken& broken : equations_->apply(placeholders))
      throw UserError(ErrorKind::constraint_violation, broken.message);
    for (const SymInt phantom : request_.equalities->phantom_symbols)
      if (const Expr* e = impl_.expr(phantom); e->kind() == ExprKind::symbol)
        if (const auto at = impl_.sources.find(e->symbol_index()); at != impl_.sources.end())
          for (const Source& source : at->second) bind(e->symbol_index(), source);
  }

  void bind(size_t symbol, const Source& source) {
    std::vector<Source>& known = out_->symbol_to_source[symbol];
    if (known.empty()) out_->symbols.push_back(symbol);
    known.push_back(source);
  }

  void violate(bool warn_only, const std::string& name, std::string message) {
    violations_.push_back({warn_only, name, std::move(message)});
  }

  std::string rendered(const Source& source, const DimConstraint& constraint) const {
    const auto* promised = std::get_if<StrictMinMaxConstraint>(&constraint);
    if (promised == nullptr) return "RelaxedUnspecConstraint(" + source.name() + ")";
    const std::string name = debug_name(source);
    const int64_t smallest = env_.options().specialize_zero_one ? 2 : 0;
    const bool lower = promised->range.lower > smallest, upper = promised->range.upper != ValueRange::unbounded_above;
    std::string out = name + " = " + source.name() + " in the specified range";
    if (lower && upper)
      out += " " + std::to_string(promised->range.lower) + " <= " + name + " <= " + std::to_string(promised->range.upper);
    else if (upper)
      out += " " + name + " <= " + std::to_string(promised->range.upper);
    else if (lower)
      out += " " + std::to_string(promised->range.lower) + " <= " + name;
    return out;
  }

  static bool warn_only(const DimConstraint& constraint) {
    if (const auto* c = std::get_if<StrictMinMaxConstraint>(&constraint)) return c->warn_only;
    if (const auto* c = std::get_if<RelaxedUnspecConstraint>(&constraint)) return c->warn_only;
    return false;
  }

  void track(const Placeholder& p) {
    out_->inputs.push_back(p.source);
    if (const auto* value = std::get_if<SymInt>(&p.value)) {
      track_integer(p.source, *value, p.constraint);
    } else if (const auto* real = std::get_if<SymFloat>(&p.value)) {
      const Expr* e = impl_.expr(*real);
      if (e->kind() == ExprKind::symbol) bind(e->symbol_index(), p.source);
      inputs_.emplace_back(p.source, e);
    } else {
      const auto& t = std::get<TensorGeometry>(p.value);
      const auto constraint = [&](const std::vector<DimConstraint>& all, size_t i) {
        return all.empty() ? DimConstraint{} : all[i];
      };
      static const SymbolicContext none;
      const SymbolicContext& context = p.context != nullptr ? *p.context : none;
      for (size_t i = 0; i < t.sizes.size(); ++i)
        track_integer(p.source.size(i), t.sizes[i], constraint(context.constraint_sizes, i));
      for (size_t i = 0; i < t.strides.size(); ++i)
        track_integer(p.source.stride(i), t.strides[i], constraint(context.constraint_strides, i));
      track_integer(p.source.storage_offset(), t.storage_offset, {});
    }
  }

  void track_integer(const Source& source, SymInt value, const DimConstraint& constraint) {
    const Expr* e = impl_.expr(value);
    const auto* promised = std::get_if<StrictMinMaxConstraint>(&constraint);
    const bool relaxed = std::holds_alternative<RelaxedUnspecConstraint>(constraint);
    if (e->kind() == ExprKind::symbol) {
      bind(e->symbol_index(), source);
      if (promised != nullptr) {
        std::vector<StrictMinMaxConstraint>& known = constraints_[e->symbol_index()];
        if (std::ranges::find(known, *promised) == known.end()) known.push_back(*promised);
      }
    } else if (e->is_integer()) {
      const int64_t v = e->integer();
      const bool static_promise = promised != nullptr && promised->range.lower == v && promised->range.upper == v;
      if ((promised != nullptr && !static_promise) || (relaxed && v != 0 && v != 1))
        violate(warn_only(constraint), debug_name(source),
                "You marked " + debug_name(source) + " as dynamic but your code specialized it to be a constant (" +
                    std::to_string(v) + ")." + specialization_cause(source));
    }
    inputs_.emplace_back(source, e);
  }

  std::string specialization_cause(const Source& source) const {
    const std::string cause = cause_of(source);
    return cause.empty() ? "" : " It was specialized by " + cause + ".";
  }

  // Who made the source's symbol a constant, or something of others.
  std::string cause_of(const Source& source) const {
    const auto symbol = source_to_symbol_.find(source.name());
    if (symbol == source_to_symbol_.end()) return "";
    const auto cause = impl_.causes.find(symbol->second);
    if (cause == impl_.causes.end() || cause->second.replaced.empty()) return "";
    return cause->second.replaced;
  }

  // Who asked: an operator with the line that called it, or a line alone.
  static std::string asked(const std::string& origin) { return origin.empty() ? "" : " (" + origin + ")"; }

  void add_check(InputCheck::Kind kind, std::string text, const std::string& why, ProducedGuards::Impl::Runnable runnable) {
    out_->checks.push_back({kind, text, why.empty() ? text : text + "  # " + why});
    out_->runnables.push_back(std::move(runnable));
  }

  void add_equality(const Source& source, const Expr* e) {
    if (e->kind() == ExprKind::symbol && out_->symbol_to_source[e->symbol_index()][0] == source) return;
    const bool is_number = e->is_integer() || e->kind() == ExprKind::float_number;
    if (request_.ignore_static && source.is_property() && is_number) {
      // No text says so, but the trace holds for this size alone.
      if (source.is_size()) out_->fixed.emplace_back(source.name(), e->integer());
      return;
    }
    if (source.is_size()) out_->dim_constraints->add_equality(source, SymInt(e));
    std::string why;
    if (const auto at = source_to_symbol_.find(source.name()); at != source_to_symbol_.end()) {
      const size_t symbol = at->second;
      const auto cause = impl_.causes.find(symbol);
      if (!(impl_.sources.at(symbol)[0] == source))
        why = "these had the same example size " + std::to_string(env_.symbols()[symbol].hint.value_or(0)) +
              " (ShapeEnvOptions::duck_shape)";
      else if (cause != impl_.causes.end())
        why = cause->second.replaced;
    }
    add_check(InputCheck::Kind::equality, source.name() + " == " + text(e), why, {e, source.name(), 0, {}});
    check_stated_equations(source, e);
  }

  // An equation between dimensions that the trace needs must be among those that the user stated.
  void check_stated_equations(const Source& source, const Expr* e) {
    if (equations_ == nullptr || !source.is_size()) return;
    const std::vector<size_t> free = impl_.knowledge.free_symbols(e);
    if (free.size() != 1 || !constraints_.contains(free[0])) return;
    const Source& root = sources_of(free[0])[0];
    const std::string name = debug_name(source), root_name = debug_name(root);
    if (e->kind() == ExprKind::symbol) {
      if (!equations_->is_equal(source, root))
        violate(request_.equalities->warn_only, name,
                "The values of " + name + " = " + source.name() + " and " + root_name + " = " + root.name() +
                    " must always be equal." + asked(cause_of(source)));
    } else if (!equations_->is_derived(source, root, e, free[0])) {
      const std::string relation = sympy_text(e, free[0], root_name);
      violate(request_.equalities->warn_only, name,
              "The values of " + name + " = " + source.name() + " must always be related to the values of " + root_name +
                  " = " + root.name() + " by " + name + " = " + relation + "." + asked(cause_of(source)));
    }
  }

  // As sympy prints it, with the symbol under another name, which may be a sum itself.
  std::string sympy_text(const Expr* e, size_t symbol, const std::string& name) const {
    std::string out = e->str();
    const std::optional<NamedDim::Derived> inner = parse_linear(name), outer = parse_linear(out);
    if (inner && inner->root != name && outer && !outer->root.empty())
      return linear_text(
          {inner->root, inner->multiplier * outer->multiplier, inner->offset * outer->multiplier + outer->offset});
    const std::string& old = env_.symbols()[symbol].name;
    for (size_t at = out.find(old); at != std::string::npos; at = out.find(old, at + name.size()))
      out.replace(at, old.size(), name);
    return out;
  }

  // The condition with symbols replaced; null if ranges alone decide it.
  const Expr* remaining(SymBool condition, bool size_oblivious) {
    if (!condition.is_symbolic()) return nullptr;
    const Expr* e = impl_.knowledge.replace_undecided(condition.expr());
    Knowledge::Premises ranges_only{.size_oblivious = size_oblivious, .use_facts = false};
    return impl_.knowledge.decide_under(e, ranges_only) ? nullptr : e;
  }

  bool is_dimension(size_t symbol) const {
    const auto at = out_->symbol_to_source.find(symbol);
    return at != out_->symbol_to_source.end() && std::ranges::any_of(at->second, &Source::is_size);
  }

  // Asserts on inputs alone stay in the program, but the solver may know what to make of them.
  void solve_assert(const RuntimeAssert& a) {
    const Expr* e = remaining(a.condition, false);
    if (e != nullptr && std::ranges::all_of(impl_.knowledge.free_symbols(e), [&](size_t s) { return is_dimension(s); }))
      out_->dim_constraints->add(SymBool(e));
  }

  void add_guard(const Guard& guard) {
    const Expr* e = remaining(guard.condition, guard.size_oblivious);
    if (e == nullptr || !issued_.insert(e).second) return;
    const std::string condition = text(e);
    const std::vector<size_t> free = impl_.knowledge.free_symbols(e);
    const bool about_dimensions = std::ranges::any_of(free, [&](size_t s) { return is_dimension(s); });
    const bool is_trivial = about_dimensions && out_->dim_constraints->add(SymBool(e));
    add_check(InputCheck::Kind::guard, condition, guard.origin().str(), {e, "", 0, {}});
    if (is_trivial || free.size() != 1) return;
    const Source& source = sources_of(free[0])[0];
    const auto promises = constraints_.find(free[0]);
    if (promises == constraints_.end()) return;
    for (const StrictMinMaxConstraint& c : promises->second)
      violate(c.warn_only, debug_name(source),
              "Not all values of " + rendered(source, c) + " satisfy the generated guard " + condition + "." +
                  asked(guard.origin().str()));
  }

  void add_range(size_t symbol) {
    const Source& source = sources_of(symbol)[0];
    if (env_.symbols()[symbol].is_float) {
      add_check(InputCheck::Kind::not_nan, "not math.isnan(" + source.name() + ")", "",
                {nullptr, source.name(), symbol, {}});
      return;
    }
    const ValueRange r = env_.symbols()[symbol].range;
    const int64_t smallest = env_.options().specialize_zero_one ? 2 : 0;
    const bool lower = r.lower != ValueRange::unbounded_below, upper = r.upper != ValueRange::unbounded_above;
    if (is_dimension(symbol)) {
      const Expr* node = impl_.knowledge.node(symbol);
      const auto add = [&](ExprKind kind, int64_t bound) {
        const Expr* condition = impl_.pool.relation_as_written(kind, node, impl_.pool.integer(bound));
        // Sizes are positive to sympy, so this says nothing.
        if (kind == ExprKind::ge && bound <= 1 && env_.symbols()[symbol].positive) return;
        out_->dim_constraints->add(SymBool(condition));
      };
      if (lower) add(ExprKind::ge, r.lower);
      if (upper) add(ExprKind::le, r.upper);
    }
    std::string at_least, at_most;
    if (lower && (!request_.simplified || r.lower != smallest)) at_least = std::to_string(r.lower) + " <= " + source.name();
    if (upper) at_most = source.name() + " <= " + std::to_string(r.upper);
    if (at_least.empty() && at_most.empty()) return;
    const auto cause = impl_.causes.find(symbol);
    std::string why;
    if (cause != impl_.causes.end()) {
      why = cause->second.lower;
      if (!cause->second.upper.empty()) why += (why.empty() ? "" : " and ") + cause->second.upper;
    }
    if (why.empty() && r.lower == 2 && !upper) why = "sizes 0 and 1 are specialised (ShapeEnvOptions::specialize_zero_one)";
    const std::string both = at_least + (at_least.empty() || at_most.empty() ? "" : " and ") + at_most;
    add_check(InputCheck::Kind::range, both, why, {nullptr, source.name(), symbol, r});
    const auto promises = constraints_.find(symbol);
    if (promises == constraints_.end()) return;
    for (const StrictMinMaxConstraint& c : promises->second) {
      const ValueRange promised = range_intersect(c.range, {smallest, ValueRange::unbounded_above});
      if (promised.lower >= r.lower && promised.upper <= r.upper) continue;
      const std::string limits = std::to_string(r.lower) + " <= " + source.name() + (upper ? " and " + at_most : "");
      violate(c.warn_only, debug_name(source),
              "Not all values of " + rendered(source, c) + " satisfy the generated guard " + limits +
                  (cause == impl_.causes.end() ? "" : asked(why)));
    }
  }

  void finish() {
    std::set<std::string> names;
    std::string lines;
    for (const Violation& v : violations_) {
      if (v.warn_only) {
        out_->warnings.push_back(v.message);
      } else {
        names.insert(v.name);
        lines += (lines.empty() ? "" : "\n") + ("  - " + v.message);
      }
    }
    if (lines.empty()) return;
    const std::string list = join(names, ", ");
    out_->violations = "Constraints violated (" + list + ")! For more information, see ShapeEnv::explain().\n" + lines;
  }

  ShapeEnv& env_;
  ShapeEnv::Impl& impl_;
  std::unordered_map<std::string, size_t> source_to_symbol_;  // by the source's name
  const GuardsRequest& request_;
  std::shared_ptr<ProducedGuards::Impl> out_;
  std::unique_ptr<EquationView> equations_;
  std::vector<std::pair<Source, const Expr*>> inputs_;
  std::map<size_t, std::vector<StrictMinMaxConstraint>> constraints_;
  std::vector<Violation> violations_;
  std::set<const Expr*> issued_;
};

using Values = std::map<std::string, Number>;

// Every source of the inputs with its value.
void collect(const Source& source, const ProducedGuards::RealInput& input, Values& values) {
  if (const auto* number = std::get_if<int64_t>(&input)) {
    values[source.name()] = *number;
  } else if (const auto* real = std::get_if<double>(&input)) {
    values[source.name()] = *real;
  } else {
    const auto& t = std::get<ProducedGuards::RealTensor>(input);
    for (size_t i = 0; i < t.sizes.size(); ++i) values[source.size(i).name()] = t.sizes[i];
    for (size_t i = 0; i < t.strides.size(); ++i) values[source.stride(i).name()] = t.strides[i];
    values[source.storage_offset().name()] = t.storage_offset;
  }
}

}  // namespace

const std::vector<InputCheck>& ProducedGuards::checks() const { return impl_->checks; }
const std::vector<std::string>& ProducedGuards::warnings() const { return impl_->warnings; }
const std::string& ProducedGuards::violations() const { return impl_->violations; }
DimConstraints& ProducedGuards::dim_constraints() const { return *impl_->dim_constraints; }

std::vector<std::string> ProducedGuards::exprs() const {
  std::vector<std::string> out;
  for (const InputCheck& c : impl_->checks) out.push_back(c.text);
  return out;
}

std::vector<std::string> ProducedGuards::verbose() const {
  std::vector<std::string> out;
  for (const InputCheck& c : impl_->checks) out.push_back(c.verbose);
  return out;
}

std::optional<std::string> ProducedGuards::first_failure(const std::vector<RealInput>& inputs) const {
  if (inputs.size() != impl_->inputs.size())
    throw UserError("guards: " + std::to_string(inputs.size()) + " inputs were given, the trace had " +
                    std::to_string(impl_->inputs.size()));
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) collect(impl_->inputs[i], inputs[i], values);
  const auto value_of = [&](size_t symbol) -> std::optional<Number> {
    const auto source = impl_->symbol_to_source.find(symbol);
    if (source == impl_->symbol_to_source.end()) return std::nullopt;
    const auto at = values.find(source->second[0].name());
    if (at == values.end()) return std::nullopt;
    return at->second;
  };
  for (size_t i = 0; i < impl_->checks.size(); ++i) {
    const Impl::Runnable& r = impl_->runnables[i];
    bool holds = false;
    try {
      if (impl_->checks[i].kind == InputCheck::Kind::guard) {
        const std::optional<Number> v = evaluate_expr(r.expr, value_of);
        holds = v && v->integer != 0;
      } else if (const auto own = values.find(r.source); own != values.end()) {
        switch (impl_->checks[i].kind) {
          case InputCheck::Kind::equality: {
            const std::optional<Number> v = evaluate_expr(r.expr, value_of);
            holds = v && v->as_double() == own->second.as_double() && v->integer == own->second.integer;
            break;
          }
          case InputCheck::Kind::range: holds = range_contains(r.range, own->second.integer); break;
          case InputCheck::Kind::not_nan: holds = !std::isnan(own->second.as_double()); break;
          case InputCheck::Kind::guard: break;
        }
      }
    } catch (const UserError&) {
      // A division by zero on these inputs: the trace does not hold for them.
    }
    if (!holds) return impl_->checks[i].text;
  }
  for (const auto& [source, size] : impl_->fixed)
    if (const auto own = values.find(source); own == values.end() || own->second.integer != size)
      return source + " == " + std::to_string(size);
  return std::nullopt;
}

GuardChecks collect_guard_checks(ShapeEnv& env, const std::vector<Placeholder>& placeholders) {
  const std::shared_ptr<ProducedGuards::Impl> impl = Producer(env, {}).run(placeholders);
  GuardChecks out{ProducedGuards(impl), {}, {}};
  for (size_t i = 0; i < impl->checks.size(); ++i) {
    const ProducedGuards::Impl::Runnable& r = impl->runnables[i];
    out.checks.push_back({impl->checks[i].kind, r.expr, r.source, r.range, impl->checks[i].text, impl->checks[i].verbose});
  }
  for (const size_t symbol : impl->symbols) out.symbols.emplace_back(symbol, impl->symbol_to_source.at(symbol)[0].name());
  return out;
}

ProducedGuards collect_guards(ShapeEnv& env, const std::vector<Placeholder>& placeholders, const GuardsRequest& request) {
  return ProducedGuards(Producer(env, request).run(placeholders));
}

ProducedGuards produce_guards(ShapeEnv& env, const std::vector<Placeholder>& placeholders, const GuardsRequest& request) {
  ProducedGuards out = collect_guards(env, placeholders, request);
  if (!out.violations().empty()) throw UserError(ErrorKind::constraint_violation, out.violations());
  return out;
}

ProducedGuards produce_guards_and_solve(ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                                        const GuardsRequest& request, const std::vector<NamedDim>& dims) {
  ProducedGuards out = collect_guards(env, placeholders, request);
  DimConstraints& solver = out.dim_constraints();
  solver.solve();
  if (!out.violations().empty() || !solver.forced_specializations().empty())
    throw UserError(ErrorKind::constraint_violation, out.violations() + solver.prettify_results(dims));
  return out;
}

ShapeEnv::Assignment bind_symbols(const ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                                  const std::vector<ProducedGuards::RealInput>& inputs) {
  if (inputs.size() != placeholders.size())
    throw UserError("bind_symbols: " + std::to_string(inputs.size()) + " inputs for " + std::to_string(placeholders.size()) +
                    " placeholders");
  ShapeEnv::Assignment out;
  const auto bind = [&](SymInt symbolic, int64_t value) {
    const Expr* e = env.impl().expr(symbolic);
    const bool negated =
        e->kind() == ExprKind::mul && e->coefficient() == -1 && e->without_coefficient()->kind() == ExprKind::symbol;
    if (negated) e = e->without_coefficient();
    if (e->kind() != ExprKind::symbol) return;
    const std::string& name = env.symbols()[e->symbol_index()].name;
    const int64_t wanted = negated ? -value : value;
    const auto known = std::ranges::find(out, name, &ShapeEnv::Assignment::value_type::first);
    if (known == out.end())
      out.emplace_back(name, wanted);
    else if (known->second != wanted)
      throw UserError(ErrorKind::constraint_violation, "bind_symbols: " + name + " is both " +
                                                           std::to_string(known->second) + " and " + std::to_string(wanted));
  };
  for (size_t i = 0; i < placeholders.size(); ++i) {
    if (const auto* value = std::get_if<SymInt>(&placeholders[i].value)) {
      if (const auto* number = std::get_if<int64_t>(&inputs[i])) bind(*value, *number);
      continue;
    }
    const auto* t = std::get_if<TensorGeometry>(&placeholders[i].value);
    const auto* real = std::get_if<ProducedGuards::RealTensor>(&inputs[i]);
    if (t == nullptr || real == nullptr) continue;
    if (t->sizes.size() != real->sizes.size() || t->strides.size() != real->strides.size())
      throw UserError("bind_symbols: " + placeholders[i].source.described() + " has " + std::to_string(real->sizes.size()) +
                      " dimensions, the trace had " + std::to_string(t->sizes.size()));
    for (size_t d = 0; d < t->sizes.size(); ++d) bind(t->sizes[d], real->sizes[d]);
    for (size_t d = 0; d < t->strides.size(); ++d) bind(t->strides[d], real->strides[d]);
    bind(t->storage_offset, real->storage_offset);
  }
  return out;
}

}  // namespace calque
