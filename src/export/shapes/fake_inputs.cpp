#include "calque/export/fake_inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/tree.h"
#include "calque/sym/export_env.h"
#include "calque/sym/expr.h"
#include "export/capture/build.h"
#include "export/shapes/shape_walk.h"
#include "sym/env_impl.h"
#include "sym/python_print.h"
#include "sym/range.h"

namespace calque {

Source source_of(const KeyPath& path) {
  Source out = Source::local(path[0].key.to_string());
  for (size_t i = 1; i < path.size(); ++i) {
    const Value& key = path[i].key;
    if (path[i].kind == TreeKey::Kind::attribute)
      out = out.attribute(key.to_string());
    else if (key.kind() == Value::Kind::integer)
      out = out.item(key.to_int());
    else
      out = out.item(key.to_string());
  }
  return out;
}

namespace {

using Kind = DynamicShapes::Kind;
constexpr int64_t no_upper_bound = ValueRange::unbounded_above;

// A dimension of an input tensor; a tensor that is passed twice is one.
struct Place {
  const TensorImpl* tensor = nullptr;
  size_t dimension = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// What the user said of a dimension.
struct Promise {
  enum class Kind : uint8_t { named, derived, relaxed };
  Kind kind;
  Place place;
  std::string name = {};
  ValueRange range = {};
  // Of a derived one: another dimension, or a root that is no input's dimension.
  std::string root_name = {};
  std::optional<Place> root = {};
  int64_t multiplier = 1;
  int64_t offset = 0;
  int64_t example = -1;  // unless it is symbolic
  bool stays_dynamic = true;
};

// A root of derived dims that is itself no input's dimension.
struct PhantomRoot {
  ValueRange range;
  int64_t value = 0;
};

// Reads the spec of every tensor; order matters, PyTorch names the first.
class Promises {
 public:
  void add_tensor(const Tensor& tensor, const DynamicShapes& shape) {
    const auto entry = [&](size_t i, const DynamicShapes& e) { add(tensor, i, e); };
    if (shape.kind() == Kind::dict) {
      for (const auto& [index, e] : shape.entries()) entry(static_cast<size_t>(index.to_int()), e);
    } else if (shape.is_sequence()) {
      for (size_t i = 0; i < shape.items().size(); ++i) entry(i, shape.items()[i]);
    }
  }

  // Relaxed ones first, then by name in the order in which names were met.
  std::vector<Promise> finish() {
    std::vector<Promise> out = std::move(relaxed_);
    for (const std::string& name : order_)
      for (Promise& p : named_.at(name)) {
        if (p.kind == Promise::Kind::derived && !p.root)
          if (const auto at = named_.find(p.root_name); at != named_.end() && !at->second.empty())
            p.root = at->second[0].place;
      }
    for (const std::string& name : order_)
      for (Promise& p : named_.at(name)) out.push_back(p);
    return out;
  }
  const std::map<std::string, PhantomRoot>& phantoms() const { return phantoms_; }

 private:
  void add(const Tensor& tensor, size_t i, const DynamicShapes& e) {
    const Place place{&tensor.impl(), i};
    if (e.kind() == Kind::hint) {
      Promise p{Promise::Kind::relaxed, place};
      p.range = {e.hint().min.value_or(0), e.hint().max.value_or(no_upper_bound)};
      p.example = example_at(tensor, i);
      // What the tracer may decide, it decides as PyTorch does: a size of 0 or 1 may have to broadcast.
      p.stays_dynamic = e.hint().type == DimHint::Type::dynamic;
      relaxed_.push_back(std::move(p));
    } else if (e.kind() == Kind::integer) {
      Promise p{Promise::Kind::named, place, std::to_string(e.integer()), {e.integer(), e.integer()}};
      p.stays_dynamic = false;
      append(std::move(p));
    } else if (e.kind() == Kind::dim) {
      const Dim& dim = e.dim();
      if (!dim.is_derived()) {
        Promise p{Promise::Kind::named, place, dim.name(), dim.range()};
        p.example = example_at(tensor, i);
        append(std::move(p));
        return;
      }
      Promise p{Promise::Kind::derived, place,        dim.name(),           dim.range(), dim.root().name(), {},
                dim.multiplier(),       dim.offset(), example_at(tensor, i)};
      if (const auto at = named_.find(p.root_name); at != named_.end() && !at->second.empty())
        p.root = at->second[0].place;
      else if (!phantoms_.contains(p.root_name))
        phantoms_[p.root_name] = {dim.root().range(), root_value(dim, tensor, i)};
      append(std::move(p));
    }
  }

  void append(Promise p) {
    if (!named_.contains(p.name)) order_.push_back(p.name);
    std::vector<Promise>& known = named_[p.name];
    known.push_back(std::move(p));
  }

  static int64_t example_at(const Tensor& tensor, size_t i) {
    const SymInt size = tensor.sym_sizes()[i];
    return size.is_symbolic() ? -1 : size.as_int();
  }

  static int64_t root_value(const Dim& dim, const Tensor& tensor, size_t i) {
    const int64_t size = tensor.sym_sizes()[i].guard_int();
    if ((size - dim.offset()) % dim.multiplier() != 0)
      throw UserError(ErrorKind::constraint_violation, "Expected shape[" + std::to_string(i) + "] = " +
                                                           std::to_string(size) + " of input Tensor to be of the form " +
                                                           dim.name() + ", where " + dim.root().name() + " is an integer");
    return (size - dim.offset()) / dim.multiplier();
  }

  std::vector<Promise> relaxed_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<Promise>> named_;
  std::map<std::string, PhantomRoot> phantoms_;
};

// A size of 0 or 1 broadcasts, is contiguous whatever its stride, and so on: what a trace learns from it holds for it alone. So where
// such a dimension was asked to be dynamic the trace sees another size in its place, the same for all that have its name.
class StandIns {
 public:
  StandIns(const std::vector<Promise>& promises, std::set<int64_t> taken) : taken_(std::move(taken)) {
    for (const Promise& p : promises) {
      if (!p.stays_dynamic) continue;
      // Those without a name are alike if their examples are: the trace may find them to be equal.
      const std::string root = p.kind == Promise::Kind::relaxed ? std::to_string(p.example)
                               : p.kind == Promise::Kind::named ? p.name
                                                                : p.root_name;
      groups_[root].push_back(&p);
    }
    for (const auto& [root, group] : groups_) choose(root, group);
  }
  bool empty() const { return at_.empty(); }
  int64_t size_at(Place place, int64_t own) const {
    const auto it = at_.find(place);
    return it == at_.end() ? own : it->second;
  }
  int64_t root_at(const std::string& name, int64_t own) const {
    const auto it = roots_.find(name);
    return it == roots_.end() ? own : it->second;
  }
  // "5 for batch, 7 for L['x'].size()[0]"
  const std::string& text() const { return text_; }

 private:
  static bool small(int64_t size) { return size == 0 || size == 1; }

  void choose(const std::string& root, const std::vector<const Promise*>& group) {
    if (std::ranges::none_of(group, [](const Promise* p) { return small(p->example); })) return;
    const auto fits = [&](int64_t value, bool own) {
      return std::ranges::all_of(group, [&](const Promise* p) {
        const int64_t size = value * p->multiplier + p->offset;
        const bool in_range = p->range.upper <= 2 || range_contains(p->range, size);
        return size >= 2 && in_range && !(own && taken_.contains(size));
      });
    };
    // Numbers that nothing else has, so that nothing is equal by chance; small ones, for what has limits.
    int64_t chosen = 0;
    for (const int64_t value : {5, 7, 11, 13, 17, 19, 23, 29, 31, 3, 2})
      if (chosen == 0 && fits(value, true)) chosen = value;
    for (int64_t value = 2; chosen == 0 && value < 10'000; ++value)
      if (fits(value, false)) chosen = value;
    if (chosen == 0) return;
    roots_[root] = chosen;
    for (const Promise* p : group) {
      const int64_t size = chosen * p->multiplier + p->offset;
      at_[p->place] = size;
      taken_.insert(size);
    }
    const std::string name = group[0]->kind == Promise::Kind::relaxed ? "a dynamic size of " + root : root;
    text_ += (text_.empty() ? "" : ", ") + std::to_string(chosen) + " for " + name;
  }

  std::set<int64_t> taken_;
  std::map<std::string, std::vector<const Promise*>> groups_;
  std::map<Place, int64_t> at_;
  std::map<std::string, int64_t> roots_;
  std::string text_;
};

void require_examples_in_range(const std::vector<Promise>& promises) {
  for (const Promise& p : promises)
    if (p.stays_dynamic && p.kind != Promise::Kind::relaxed && p.example >= 0 && !range_contains(p.range, p.example))
      throw UserError(ErrorKind::constraint_violation, "the example's size " + std::to_string(p.example) + " of " + p.name +
                                                           " is not in range " + str(p.range));
}

const DynamicShapes* entry_of(const DynamicShapes& shape, size_t i) {
  if (shape.is_sequence()) return &shape.items()[i];
  if (shape.kind() == Kind::dict) return shape.find(i);
  return nullptr;
}

class Maker {
 public:
  Maker(FakeInputs& out, const std::vector<Promise>& promises, const std::map<std::string, PhantomRoot>& phantoms,
        const StandIns& stand_ins)
      : out_(out), env_(*out.mode->env()), promises_(promises), phantoms_(phantoms), stand_ins_(stand_ins) {
    for (const Promise& p : promises_) of_[p.place] = &p;
  }

  Value leaf(const KeyPath& path, const Value& value, const DynamicShapes& shape) {
    const Source source = source_of(path);
    if (value.is_tensor()) return tensor(source, value.to_tensor(), shape);
    const bool dynamic = shape.kind() == Kind::hint && shape.hint().type != DimHint::Type::fixed;
    if (value.kind() != Value::Kind::integer || !dynamic || value.to_sym_int().is_symbolic()) return value;
    const SymInt symbol = create_unspecified_symbol(env_, value.to_int(), source, DimDynamic::dynamic_size);
    Placeholder p{source, symbol};
    if (shape.hint().type == DimHint::Type::dynamic) p.constraint = RelaxedUnspecConstraint{};
    out_.placeholders.push_back(std::move(p));
    return symbol;
  }

  void equalities() {
    std::map<std::string, Place> first;
    std::map<std::string, SymInt> phantom_symbols;
    EqualityConstraint& eq = out_.equalities;
    for (const Promise& p : promises_) {
      const std::vector<Source>& sources = sources_.at(p.place);
      for (size_t i = 1; i < sources.size(); ++i) eq.equal.emplace_back(sources[0], sources[i]);
      switch (p.kind) {
        case Promise::Kind::relaxed: eq.relaxed.push_back(sources[0]); break;
        case Promise::Kind::named: {
          const auto [at, is_new] = first.emplace(p.name, p.place);
          if (!is_new)
            for (const Source& other : sources_.at(at->second)) eq.equal.emplace_back(sources[0], other);
          break;
        }
        case Promise::Kind::derived: {
          if (p.root) {
            eq.derived.push_back({sources[0], sources_.at(*p.root)[0], p.multiplier, p.offset});
            break;
          }
          const auto known = phantom_symbols.find(p.root_name);
          SymInt root;
          if (known != phantom_symbols.end()) {
            root = known->second;
          } else {
            const PhantomRoot& phantom = phantoms_.at(p.root_name);
            root = create_symbol(env_, stand_ins_.root_at(p.root_name, phantom.value), Source::constant(p.root_name),
                                 {DimDynamic::dynamic_size, StrictMinMaxConstraint{phantom.range}});
            phantom_symbols.emplace(p.root_name, root);
            eq.phantom_symbols.push_back(root);
          }
          eq.derived.push_back({sources[0], root, p.multiplier, p.offset});
        }
      }
    }
  }

 private:
  Tensor tensor(const Source& source, const Tensor& real, const DynamicShapes& shape) {
    const SymIntList sizes = real.sym_sizes();
    auto context = std::make_unique<SymbolicContext>();
    context->sizes.assign(sizes.size(), DimDynamic::static_size);
    context->constraint_sizes.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const DynamicShapes* entry = entry_of(shape, i);
      if (entry != nullptr && entry->kind() == Kind::hint) hint(entry->hint(), i, *context);
      const auto promise = of_.find({&real.impl(), i});
      if (promise == of_.end()) continue;
      sources_[promise->first].push_back(source.size(i));
      if (promise->second->kind == Promise::Kind::relaxed) continue;
      context->constraint_sizes[i] = StrictMinMaxConstraint{promise->second->range};
      set_debug_name(env_, source.size(i), promise->second->name);
    }
    if (!stand_ins_.empty() && !real.is_symbolic())
      for (size_t i = 0; i < sizes.size(); ++i)
        context->examples.push_back(stand_ins_.size_at({&real.impl(), i}, sizes[i].as_int()));
    const Tensor fake = out_.mode->from_tensor(real, source, context.get());
    if (!context->examples.empty())
      for (size_t i = 0; i < sizes.size(); ++i)
        if (const SymInt size = fake.sym_sizes()[i]; size.is_symbolic())
          out_.own_sizes.emplace_back(size.str(), sizes[i].as_int());
    const SymInts strides(fake.sym_strides().begin(), fake.sym_strides().end());
    out_.placeholders.push_back(
        {source,
         TensorGeometry{SymInts(fake.sym_sizes().begin(), fake.sym_sizes().end()), strides, fake.sym_storage_offset()},
         context.get()});
    out_.contexts.push_back(std::move(context));
    return fake;
  }

  static void hint(const DimHint& hint, size_t i, SymbolicContext& context) {
    if (hint.type == DimHint::Type::fixed) return;
    context.sizes[i] = DimDynamic::dynamic_size;
    if (hint.type == DimHint::Type::dynamic) context.constraint_sizes[i] = RelaxedUnspecConstraint{};
  }

  FakeInputs& out_;
  ShapeEnv& env_;
  const std::vector<Promise>& promises_;
  const std::map<std::string, PhantomRoot>& phantoms_;
  const StandIns& stand_ins_;
  std::map<Place, const Promise*> of_;
  std::map<Place, std::vector<Source>> sources_;
};

// ---- ranges ---------------------------------------------------------------------------------------------------------

std::string bound_text(int64_t bound) { return bound == no_upper_bound ? "int_oo" : std::to_string(bound); }
std::string bound_text(const std::optional<int64_t>& bound) { return bound ? std::to_string(*bound) : "None"; }

class Ranges {
 public:
  explicit Ranges(ShapeEnv& env) : env_(env) {
    for (const Symbol& s : env.symbols())
      if (s.name.starts_with("u") && !s.is_float) at(s.name) = s.range;
  }

  // A size or an integer input, and what the user said of it.
  void add(SymInt value, const Value& example, const DynamicShapes* entry, const std::string& where) {
    value = env_.simplify(value);
    const DimHint* hint = entry != nullptr && entry->kind() == Kind::hint ? &entry->hint() : nullptr;
    if (value.is_symbolic()) {
      const bool promised = entry != nullptr && !entry->is_none() && hint == nullptr;
      const ValueRange known = promised ? range_of(*entry) : env_.range(value);
      ValueRange& range = at(value.str());
      range = range_intersect(range, known);
      values_.push_back(value);
    }
    if (hint != nullptr) add_hint(value, example, *hint, where);
  }

  RangeConstraints finish() {
    if (!violations_.empty()) {
      std::string message =
          "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:";
      for (const std::string& v : violations_) message += "\n" + v;
      throw UserError(ErrorKind::constraint_violation, message);
    }
    // Sizes may be expressions; files want the ranges of their symbols too.
    for (const SymInt value : values_)
      for (const size_t symbol : env_.impl().knowledge.free_symbols(value.expr())) {
        const Symbol& s = env_.symbols()[symbol];
        if (std::ranges::find(ranges_, s.name, &RangeConstraints::value_type::first) == ranges_.end())
          ranges_.emplace_back(s.name, s.range);
      }
    return std::move(ranges_);
  }

 private:
  static ValueRange range_of(const DynamicShapes& entry) {
    return entry.kind() == Kind::integer ? ValueRange{entry.integer(), entry.integer()} : entry.dim().range();
  }

  ValueRange& at(const std::string& expression) {
    const auto found = std::ranges::find(ranges_, expression, &RangeConstraints::value_type::first);
    if (found != ranges_.end()) return found->second;
    return ranges_.emplace_back(expression, ValueRange{0, no_upper_bound}).second;
  }

  void add_hint(SymInt value, const Value& example, const DimHint& hint, const std::string& where) {
    const bool is_static = !value.is_symbolic();
    const ValueRange traced = is_static ? ValueRange{value.as_int(), value.as_int()} : at(value.str());
    const bool single = traced.lower == traced.upper;
    const int64_t size = example.to_sym_int().is_symbolic() ? -1 : example.to_int();
    const bool zero_one = size == 0 || size == 1;
    if (hint.type == DimHint::Type::automatic && single && zero_one)
      warn("dimension " + where +
           " 0/1 specialized; Dim.AUTO was specified along with a sample input with hint = " + std::to_string(size) + ".");
    const ValueRange wanted{hint.min.value_or(0), hint.max.value_or(no_upper_bound)};
    const ValueRange both = range_intersect(traced, wanted);
    if (both.lower > both.upper) {
      violations_.push_back("- Received user-specified min/max range of [" + bound_text(hint.min) + ", " +
                            bound_text(hint.max) + "], conflicting with the inferred min/max range of [" +
                            bound_text(traced.lower) + ", " + bound_text(traced.upper) + "], for " + where + ".");
      return;
    }
    if (!is_static) {
      at(value.str()) = both;
      env_.constrain_range(value, both);
    }
    if (hint.type != DimHint::Type::dynamic || both.lower != both.upper) return;
    std::string message = "- Received user-specified dim hint Dim.DYNAMIC(min=" + bound_text(hint.min) +
                          ", max=" + bound_text(hint.max) + "), but ";
    if (single && zero_one)
      message += "export 0/1 specialized due to hint of " + std::to_string(size) + " for dimension " + where + ".";
    else
      message += "tracing inferred a static shape of " + std::to_string(both.lower) + " for dimension " + where + ".";
    violations_.push_back(std::move(message));
  }

  ShapeEnv& env_;
  RangeConstraints ranges_;
  std::vector<SymInt> values_;
  std::vector<std::string> violations_;
};

}  // namespace

FakeInputs make_fake_inputs(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs,
                            const DynamicShapes& shapes, const FakeInputOptions& options) {
  const Kwargs combined = combine_args(names, args, kwargs);
  check_dynamic_shapes(combined, shapes);
  FakeInputs out;
  out.mode =
      FakeMode::make({.env = ShapeEnv::make({.prefer_deferred_runtime_asserts = options.prefer_deferred_runtime_asserts}),
                      .allow_non_fake_inputs = true});
  if (options.prefer_deferred_runtime_asserts) defer_guards(*out.mode->env());
  out.dims = named_dims(shapes);
  const std::vector<CallArgument> arguments = call_arguments(names, args, kwargs, shapes.empty() ? DynamicShapes() : shapes);

  Promises promises;
  std::set<int64_t> taken;  // the sizes of all inputs
  std::unordered_map<std::string, std::string> flat;
  for (const CallArgument& a : arguments)
    walk_shapes(a.value, a.shapes, a.path, [&](const KeyPath& path, const Value& value, const DynamicShapes& shape) {
      if (value.is_tensor()) {
        promises.add_tensor(value.to_tensor(), shape);
        for (const SymInt size : value.to_tensor().sym_sizes())
          if (!size.is_symbolic()) taken.insert(size.as_int());
      }
      const Source position = Source::local("flat_args").item(static_cast<int64_t>(flat.size()));
      flat.emplace(source_of(path).name(), position.name());
    });
  if (!options.flat_names) flat.clear();
  name_symbols_by_source(*out.mode->env(), std::move(flat));
  const std::vector<Promise> promised = promises.finish();
  if (options.keep_dynamic_zero_one) require_examples_in_range(promised);
  const StandIns stand_ins(options.keep_dynamic_zero_one ? promised : std::vector<Promise>{}, std::move(taken));
  out.stand_ins = stand_ins.text();
  Maker maker(out, promised, promises.phantoms(), stand_ins);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const CallArgument& a = arguments[i];
    const size_t first = out.leaves.size();
    walk_shapes(a.value, a.shapes, a.path, [&](const KeyPath& path, const Value& value, const DynamicShapes& shape) {
      Value fake = maker.leaf(path, value, shape);
      out.leaves.push_back({keystr(path), value, std::move(fake), shape});
    });
    Values fakes;
    for (size_t j = first; j < out.leaves.size(); ++j) fakes.push_back(out.leaves[j].fake);
    Value whole = tree_unflatten(fakes, tree_structure(a.value));
    if (i < args.size())
      out.args.push_back(std::move(whole));
    else
      out.kwargs.emplace_back(kwargs[i - args.size()].first, std::move(whole));
  }
  maker.equalities();
  return out;
}

std::string refused_example(const FakeInputs& inputs) {
  if (inputs.stand_ins.empty()) return "";
  const ShapeEnv& env = *inputs.mode->env();
  const auto refused = [&](SymBool condition, const GuardOrigin& origin) -> std::string {
    if (env.evaluate(condition, inputs.own_sizes).value_or(true)) return "";
    return condition.str() + " was needed (" + origin.str() + ")";
  };
  for (const Guard& g : env.guards())
    if (std::string why = refused(g.condition, g.origin()); !why.empty()) return why;
  for (const RuntimeAssert& a : env.runtime_asserts())
    if (std::string why = refused(a.condition, a.origin); !why.empty()) return why;
  return "";
}

void solve_constraints(const FakeInputs& inputs) {
  ShapeEnv& env = *inputs.mode->env();
  const GuardsRequest request{.equalities = &inputs.equalities, .ignore_static = false};
  produce_guards_and_solve(env, inputs.placeholders, request, inputs.dims);
  env.freeze();
}

RangeConstraints range_constraints(const FakeInputs& inputs) {
  Ranges ranges(*inputs.mode->env());
  for (const FakeInputs::Leaf& leaf : inputs.leaves) {
    const std::string where = "inputs" + leaf.path;
    if (leaf.fake.is_tensor()) {
      const SymIntList sizes = leaf.fake.to_tensor().sym_sizes();
      for (size_t i = 0; i < sizes.size(); ++i)
        ranges.add(sizes[i], leaf.example.to_tensor().sym_sizes()[i], entry_of(leaf.shape, i),
                   where + ".shape[" + std::to_string(i) + "]");
    } else if (leaf.fake.kind() == Value::Kind::integer && leaf.fake.to_sym_int().is_symbolic()) {
      ranges.add(leaf.fake.to_sym_int(), leaf.example, &leaf.shape, where);
    }
  }
  return ranges.finish();
}

std::vector<std::string> guards_code(const ShapeEnv& env) {
  ShapeEnv::Impl& impl = env.impl();
  std::vector<std::string> out;
  const auto input = [&](size_t symbol) -> const Source* {
    const auto at = impl.sources.find(symbol);
    return at == impl.sources.end() || at->second.empty() ? nullptr : &at->second[0];
  };
  for (const Guard& g : env.guards()) {
    if (!g.condition.is_symbolic()) continue;
    const Expr* e = g.condition.expr();
    // Roots of derived dims that are no input's dimension cannot be written.
    const bool writable = std::ranges::all_of(impl.knowledge.free_symbols(e), [&](size_t s) {
      const Source* source = input(s);
      return source != nullptr && source->name().starts_with("L[");
    });
    if (writable) out.push_back(python_text(e, [&](size_t s) { return input(s)->name(); }));
  }
  return out;
}

}  // namespace calque
