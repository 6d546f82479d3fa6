// Dynamic shapes as plain data, in PyTorch's form, and back.
#include <algorithm>
#include <map>
#include <set>

#include "calque/base/error.h"
#include "calque/export/dynamic_shapes.h"
#include "export/shapes/shape_walk.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

using Kind = DynamicShapes::Kind;

// ---- writing --------------------------------------------------------------------------------------------------------

class Dumper {
 public:
  Value leaf(const Value& value, const DynamicShapes& shape) {
    if (!value.is_tensor()) return {};
    const SymIntList sizes = value.to_tensor().sym_sizes();
    Values out;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const DynamicShapes* entry = nullptr;
      if (shape.kind() == Kind::dict) entry = shape.find(i);
      if (shape.is_sequence()) entry = &shape.items()[i];
      if (shape.is_none())
        out.push_back(dimension(DynamicShapes(Dim::STATIC)));
      else if (entry == nullptr || entry->is_none())
        out.emplace_back(sizes[i]);
      else
        out.push_back(dimension(*entry));
    }
    return list(std::move(out));
  }

  Value dims() const {
    std::vector<std::pair<Value, Value>> out;
    for (const auto& [name, root] : roots_) {
      const Value max = root.range.upper == ValueRange::unbounded_above ? Value() : Value(root.range.upper);
      out.emplace_back(name, dict({{"min", root.range.lower},
                                   {"max", max},
                                   {"derived", list(Values(root.derived.begin(), root.derived.end()))}}));
    }
    return dict(std::move(out));
  }

 private:
  struct Root {
    ValueRange range;
    std::set<std::string> derived;
  };

  Value dimension(const DynamicShapes& entry) {
    switch (entry.kind()) {
      case Kind::integer: return entry.integer();
      case Kind::hint:
        switch (entry.hint().type) {
          case DimHint::Type::automatic: return "_DimHint.AUTO";
          case DimHint::Type::dynamic: return "_DimHint.DYNAMIC";
          case DimHint::Type::fixed: return "_DimHint.STATIC";
        }
        break;
      case Kind::dim: {
        const Dim& dim = entry.dim();
        Root& root = roots_.try_emplace(dim.root().name(), Root{dim.root().range(), {}}).first->second;
        if (dim.is_derived()) root.derived.insert(dim.name());
        return dim.name();
      }
      case Kind::none:
      case Kind::tuple:
      case Kind::list:
      case Kind::dict: break;
    }
    throw InternalError("an entry of a checked shape is a dim, a hint or a number");
  }

  std::map<std::string, Root> roots_;
};

// The arguments' structure with other leaves; structures become lists.
Value rebuilt(const TreeSpec& spec, const Value*& next) {
  if (spec.is_leaf()) return *next++;
  Values items;
  for (const TreeSpec& child : spec.children()) items.push_back(rebuilt(child, next));
  if (spec.kind() == TreeSpec::Kind::tuple) return tuple(std::move(items));
  if (spec.kind() == TreeSpec::Kind::list || spec.kind() == TreeSpec::Kind::structure) return list(std::move(items));
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i < items.size(); ++i) entries.emplace_back(spec.dict_keys()[i], std::move(items[i]));
  return dict(std::move(entries));
}

// ---- reading --------------------------------------------------------------------------------------------------------

std::string keys_text(const DictValue& d) {
  Values keys;
  for (const auto& [key, value] : d.items) keys.push_back(key);
  return "dict_keys(" + list(std::move(keys)).str() + ")";
}

bool has_exactly(const DictValue& d, const std::vector<std::string>& keys) {
  return d.items.size() == keys.size() &&
         std::ranges::all_of(keys, [&](const std::string& k) { return d.find(k) != nullptr; });
}

std::string plain(const Value& v) { return v.kind() == Value::Kind::string ? v.to_string() : v.str(); }

class Loader {
 public:
  explicit Loader(const DictValue& dims) : dims_(dims) {
    for (const auto& [key, info] : dims.items) check(key, info);
    for (const auto& [key, info] : dims.items) add(key.to_string(), info.to_dict());
  }

  DynamicShapes read(const Value& v) const {
    switch (v.kind()) {
      case Value::Kind::none: return {};
      case Value::Kind::integer: return v.to_int();
      case Value::Kind::list:
      case Value::Kind::tuple: {
        DynamicShapes::Items items;
        for (const Value& item : v.to_items()) items.push_back(read(item));
        return v.kind() == Value::Kind::list ? DynamicShapes::list(std::move(items))
                                             : DynamicShapes::tuple(std::move(items));
      }
      case Value::Kind::dict: {
        DynamicShapes::Entries entries;
        for (const auto& [key, entry] : v.to_dict().items) entries.emplace_back(key, read(entry));
        return DynamicShapes::dict(std::move(entries));
      }
      case Value::Kind::string: return named(v.to_string());
      case Value::Kind::boolean:
      case Value::Kind::floating:
      case Value::Kind::complex:
      case Value::Kind::slice:
      case Value::Kind::tensor:
      case Value::Kind::dtype:
      case Value::Kind::device:
      case Value::Kind::layout:
      case Value::Kind::memory_format:
      case Value::Kind::generator:
      case Value::Kind::node:
      case Value::Kind::structure: break;
    }
    throw UserError(
        "Expected leaves in `spec['dynamic_shapes']` to be ints, None, Dim.AUTO/STATIC, symbols,  or derived "
        "expressions, got " +
        v.str());
  }

 private:
  static void check(const Value& key, const Value& info) {
    if (key.kind() != Value::Kind::string)
      throw UserError("Expected `spec['dims']` keys to be strings for symbols, got key " + python_type_text(key));
    const std::string& name = key.to_string();
    if (info.kind() != Value::Kind::dict || !has_exactly(info.to_dict(), {"derived", "max", "min"}))
      throw UserError("Expected `spec['dims']` values to have keys `derived`, `max`, and `min`, instead found " +
                      (info.kind() == Value::Kind::dict ? keys_text(info.to_dict()) : info.str()));
    const DictValue& d = info.to_dict();
    const Value &min = *d.find("min"), &max = *d.find("max"), &derived = *d.find("derived");
    if (min.kind() != Value::Kind::integer)
      throw UserError("Expected dims in `spec['dims']` to map `min` to an int, got " + name + ": " + plain(min));
    if (max.kind() != Value::Kind::integer && !max.is_none())
      throw UserError("Expected dims in `spec['dims']` to map `max` to an int or None, got " + name + ": " + plain(max));
    const bool all_text = derived.kind() == Value::Kind::list && std::ranges::all_of(derived.to_items(), [](const Value& v) {
                            return v.kind() == Value::Kind::string;
                          });
    if (!all_text)
      throw UserError("Expected dims in `spec['dims']` to map `derived` to a list of derived expressions, got " + name +
                      ": " + plain(derived));
  }

  void add(const std::string& name, const DictValue& info) {
    const std::optional<NamedDim::Derived> symbol = parse_linear(name);
    if (!symbol || symbol->root != name) throw UserError("Expected `spec['dims']` keys to be symbols, got " + name);
    const Value& max = *info.find("max");
    const Dim root(name, info.find("min")->to_int(), max.is_none() ? std::nullopt : std::optional(max.to_int()));
    known_.emplace(name, root);
    for (const Value& v : info.find("derived")->to_items()) {
      const std::string& text = v.to_string();
      const std::optional<NamedDim::Derived> linear = parse_linear(text);
      if (!linear) throw UserError("Expected derived expressions to be linear expressions, got " + text);
      if (linear->root != name)
        throw UserError("Expected derived expressions in to have " + name + " as the only free symbol, got " + text);
      Dim dim = root;
      if (linear->multiplier != 1) dim = linear->multiplier * dim;
      if (linear->offset != 0) dim = dim + linear->offset;
      known_.emplace(text, dim);
    }
  }

  DynamicShapes named(const std::string& text) const {
    if (text == "_DimHint.AUTO") return Dim::AUTO;
    if (text == "_DimHint.DYNAMIC") return Dim::DYNAMIC;
    if (text == "_DimHint.STATIC") return Dim::STATIC;
    const auto at = known_.find(text);
    if (at == known_.end())
      throw UserError("Expected dims in `spec['dynamic_shapes']` to be tracked in `spec['dims']`, got " + text +
                      " which is not in " + keys_text(dims_));
    return at->second;
  }

  const DictValue& dims_;
  std::map<std::string, Dim> known_;
};

}  // namespace

Value dump_dynamic_shapes(const DynamicShapes& shapes, const Values& args, const Kwargs& kwargs) {
  if (shapes.is_none()) return dict({{"dynamic_shapes", Value()}, {"dims", dict({})}});
  // By position from here on: the order of the spec's entries is taken for the order of the arguments.
  DynamicShapes::Items items;
  if (shapes.kind() == Kind::dict)
    for (const auto& [key, entry] : shapes.entries()) items.push_back(entry);
  else
    items = shapes.items();
  const DynamicShapes by_position = DynamicShapes::tuple(std::move(items));
  Values all = args;
  for (const auto& [name, value] : kwargs) all.push_back(value);
  Kwargs numbered;
  for (const Value& v : all) numbered.emplace_back(std::to_string(numbered.size()), v);
  check_dynamic_shapes(numbered, by_position);
  const Value inputs = tuple(std::move(all));
  Dumper dumper;
  Values leaves;
  walk_shapes(inputs, by_position, {}, [&](const KeyPath&, const Value& value, const DynamicShapes& shape) {
    leaves.push_back(dumper.leaf(value, shape));
  });
  const Value* next = leaves.data();
  Value tree = rebuilt(tree_structure(inputs), next);
  return dict({{"dynamic_shapes", std::move(tree)}, {"dims", dumper.dims()}});
}

DynamicShapes load_dynamic_shapes(const Value& spec) {
  if (spec.kind() != Value::Kind::dict)
    throw UserError("With from_dict=True, expected `spec` to be a dict, got " + python_type_text(spec));
  const DictValue& d = spec.to_dict();
  if (!has_exactly(d, {"dims", "dynamic_shapes"}))
    throw UserError("With from_dict=True, expected `spec` to have keys `dims` and `dynamic_shapes`, instead found " +
                    keys_text(d));
  const Value& dims = *d.find("dims");
  if (dims.kind() != Value::Kind::dict)
    throw UserError("Expected `spec['dims']` to be a dict, got " + python_type_text(dims));
  return Loader(dims.to_dict()).read(*d.find("dynamic_shapes"));
}

}  // namespace calque
