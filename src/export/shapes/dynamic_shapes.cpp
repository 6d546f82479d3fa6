#include "calque/export/dynamic_shapes.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "export/shapes/shape_walk.h"

namespace calque {

namespace {

using Kind = DynamicShapes::Kind;

std::string type_text(const TreeSpec& spec) {
  switch (spec.kind()) {
    case TreeSpec::Kind::tuple: return "<class 'tuple'>";
    case TreeSpec::Kind::list: return "<class 'list'>";
    case TreeSpec::Kind::dict: return "<class 'dict'>";
    case TreeSpec::Kind::ordered_dict: return "<class 'collections.OrderedDict'>";
    case TreeSpec::Kind::structure: return "<class '" + std::string(spec.type()) + "'>";
    case TreeSpec::Kind::leaf: break;
  }
  throw InternalError("a leaf has no container type");
}

std::string type_text(const DynamicShapes& shapes) {
  switch (shapes.kind()) {
    case Kind::tuple: return "<class 'tuple'>";
    case Kind::list: return "<class 'list'>";
    case Kind::dict: return "<class 'dict'>";
    case Kind::none: return "<class 'NoneType'>";
    case Kind::integer: return "<class 'int'>";
    case Kind::hint: return "<class 'torch.export.dynamic_shapes._DimHint'>";
    case Kind::dim:
      return shapes.dim().is_derived() ? "<class 'torch.export.dynamic_shapes._DerivedDim'>"
                                       : "<class 'torch.export.dynamic_shapes.Dim'>";
  }
  throw InternalError("DynamicShapes: unknown kind");
}

bool is_dict(const TreeSpec& spec) {
  return spec.kind() == TreeSpec::Kind::dict || spec.kind() == TreeSpec::Kind::ordered_dict;
}

std::string list_text(const Values& items) { return list(items).str(); }

Values keys_of(const DynamicShapes& dict) {
  Values out;
  for (const auto& [key, entry] : dict.entries()) out.push_back(key);
  return out;
}

size_t num_children(const DynamicShapes& shapes) {
  return shapes.is_sequence() ? shapes.items().size() : shapes.entries().size();
}

KeyPath below(const KeyPath& path, TreeKey key) {
  KeyPath out = path;
  out.push_back(std::move(key));
  return out;
}

[[noreturn]] void refuse_structure(const KeyPath& path, const std::string& inputs, const std::string& shapes) {
  const std::string at = keystr(path);
  throw UserError("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs" + at + "` " + inputs +
                  ", but `dynamic_shapes" + at + "` " + shapes);
}

std::string count_text(size_t n) { return "has " + std::to_string(n) + " elements"; }

// Containers must match down to the leaves of the inputs and to structures, which are matched by their children.
void compare(const TreeSpec& spec, const DynamicShapes& shapes, const KeyPath& path) {
  if (spec.is_leaf() || spec.kind() == TreeSpec::Kind::structure) return;
  const bool container = shapes.is_sequence() || shapes.kind() == Kind::dict;
  if (!container) refuse_structure(path, "is a " + type_text(spec), "is not");
  const bool same_type = is_dict(spec) ? shapes.kind() == Kind::dict
                                       : shapes.kind() == (spec.kind() == TreeSpec::Kind::list ? Kind::list : Kind::tuple);
  if (!same_type) refuse_structure(path, "is a " + type_text(spec), "is a " + type_text(shapes));
  if (spec.num_children() != num_children(shapes))
    refuse_structure(path, count_text(spec.num_children()), count_text(num_children(shapes)));
  const std::vector<TreeKey> keys = spec.keys();
  if (is_dict(spec))
    for (const TreeKey& key : keys)
      if (shapes.find(key.key) == nullptr)
        refuse_structure(path, "has keys " + list_text(spec.dict_keys()), "has keys " + list_text(keys_of(shapes)));
  for (size_t i = 0; i < keys.size(); ++i)
    compare(spec.children()[i], is_dict(spec) ? *shapes.find(keys[i].key) : shapes.items()[i], below(path, keys[i]));
}

void walk(const TreeSpec& spec, ListRef<Value> leaves, const DynamicShapes& shapes, const KeyPath& path,
          const ShapeLeaf& leaf) {
  if (spec.is_leaf()) {
    leaf(path, leaves[0], shapes);
    return;
  }
  const std::vector<TreeKey> keys = spec.keys();
  const bool is_structure = spec.kind() == TreeSpec::Kind::structure;
  if (is_structure && !shapes.is_none()) {
    const bool fits = shapes.is_sequence() || shapes.kind() == Kind::dict;
    if (!fits) refuse_structure(path, "is a " + type_text(spec), "is not");
    if (num_children(shapes) != keys.size())
      refuse_structure(path, count_text(keys.size()), count_text(num_children(shapes)));
  }
  size_t first = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const TreeSpec& child = spec.children()[i];
    const DynamicShapes* below_shapes = &shapes;  // an empty spec says nothing of what is below it
    if (shapes.is_sequence()) {
      below_shapes = &shapes.items()[i];
    } else if (shapes.kind() == Kind::dict) {
      below_shapes = shapes.find(keys[i].key);
      if (below_shapes == nullptr) {
        Values names;
        for (const TreeKey& key : keys) names.push_back(key.key);
        refuse_structure(path, "has keys " + list_text(names), "has keys " + list_text(keys_of(shapes)));
      }
    }
    const KeyPath child_path = below(path, keys[i]);
    if (is_structure) compare(child, *below_shapes, child_path);
    walk(child, ListRef<Value>(leaves.data() + first, child.num_leaves()), *below_shapes, child_path, leaf);
    first += child.num_leaves();
  }
}

class Checker {
 public:
  void leaf(const KeyPath& path, const Value& value, const DynamicShapes& shape) {
    if (value.is_tensor()) {
      tensor(path, value.to_tensor(), shape);
    } else if (value.kind() == Value::Kind::integer || value.kind() == Value::Kind::boolean) {
      if (shape.kind() == Kind::dim)
        throw UserError(
            "Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead.");
      if (shape.is_sequence() || shape.kind() == Kind::dict)
        throw UserError("expected dynamic_shape to be None, int, or _DimHint for _IntWrapper, got " + type_text(shape));
    } else if (!shape.is_none()) {
      throw UserError("Cannot associate shape " + shape.str() + " specified at `dynamic_shapes" + keystr(path) +
                      "` to non-tensor type " + python_type_text(value) + " at `inputs" + keystr(path) +
                      "` (expected None)");
    }
  }

 private:
  void tensor(const KeyPath& path, const Tensor& tensor, const DynamicShapes& shape) {
    if (shape.is_none()) return;
    const std::string at = "`dynamic_shapes" + keystr(path) + "`";
    if (shape.kind() == Kind::dict) {
      for (const auto& [index, entry] : shape.entries()) {
        if (is_container(entry))
          throw UserError("Unexpected dimension mapped to index " + plain(index) + " in input tensor shape " + shape.str() +
                          " specified at " + at +
                          " (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got " + entry.str() +
                          " instead)");
        if (index.kind() != Value::Kind::integer || index.to_int() < 0 || index.to_int() >= tensor.dim())
          throw UserError("Unexpected index " + index.str() + " in input tensor shape " + shape.str() + " specified at " +
                          at + " (expected a dimension of the actual tensor shape " + size_text(tensor) + ", from 0 to " +
                          std::to_string(tensor.dim() - 1) + ")");
        dimension(entry);
      }
    } else if (shape.is_sequence()) {
      if (shape.items().size() != static_cast<size_t>(tensor.dim()))
        throw UserError("Expected dynamic shape spec " + shape.str() + " specified at " + at +
                        " to have the same length as the actual tensor shape " + size_text(tensor) + " (expected " +
                        std::to_string(tensor.dim()) + ", but got " + std::to_string(shape.items().size()) + " instead)");
      for (size_t i = 0; i < shape.items().size(); ++i) {
        const DynamicShapes& entry = shape.items()[i];
        if (is_container(entry))
          throw UserError("Unexpected dimension #" + std::to_string(i) + " in input tensor shape " + shape.str() +
                          " specified at " + at +
                          " (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got " + entry.str() +
                          " instead)");
        dimension(entry);
      }
    } else {
      throw UserError("Unexpected input tensor shape " + shape.str() + " specified at " + at +
                      " (expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, where each "
                      "dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)");
    }
  }

  static bool is_container(const DynamicShapes& entry) { return entry.is_sequence() || entry.kind() == Kind::dict; }
  static std::string plain(const Value& key) { return key.kind() == Value::Kind::string ? key.to_string() : key.str(); }
  static std::string size_text(const Tensor& t) {
    std::string out = join(t.sym_sizes(), ", ", [](const SymInt& size) { return size.str(); });
    return "torch.Size([" + out + "])";
  }

  void dimension(const DynamicShapes& entry) {
    if (entry.is_none()) warn("Using None as a dynamic shape dimension is deprecated. Please use Dim.STATIC instead");
    if (entry.kind() != Kind::dim) return;
    const Dim& dim = entry.dim();
    const ValueRange range = dim.range();
    const auto [known, is_new] = bounds_.emplace(dim.name(), range);
    if (!is_new && known->second != range)
      throw UserError("Found different definitions " + readable(dim.name(), known->second) + " and " +
                      readable(dim.name(), range) + " for the same symbolic dimension " + dim.str() + "!");
  }

  static std::string readable(const std::string& name, ValueRange range) {
    std::string out = "Dim('" + name + "'";
    if (range.lower != 2) out += ", min=" + std::to_string(range.lower);
    if (range.upper != ValueRange::unbounded_above) out += ", max=" + std::to_string(range.upper);
    return out + ")";
  }

  std::map<std::string, ValueRange> bounds_;
};

void check_names(const Kwargs& combined_args, const DynamicShapes& shapes) {
  std::vector<std::string> expected;
  for (const auto& [name, value] : combined_args) expected.push_back(name);
  std::vector<std::string> found;
  for (const auto& [key, entry] : shapes.entries())
    found.push_back(key.kind() == Value::Kind::string ? key.to_string() : key.str());
  if (std::multiset<std::string>(expected.begin(), expected.end()) == std::multiset<std::string>(found.begin(), found.end()))
    return;
  const auto names = [](const std::vector<std::string>& of) { return list_text(Values(of.begin(), of.end())); };
  std::string message = "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names " +
                        names(expected) + " of `inputs`, but here they are " + list_text(keys_of(shapes)) + ". ";
  const bool one_dict = combined_args.size() == 1 && combined_args[0].second.kind() == Value::Kind::dict;
  if (one_dict)
    message +=
        "Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to enclose "
        "`dynamic_shapes` in a list/tuple?";
  else
    message +=
        "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching "
        "`inputs`.";
  throw UserError(message);
}

// The arguments in the container that the spec uses at the top.
Value arguments_like(const Kwargs& combined_args, const DynamicShapes& shapes) {
  Values items;
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : combined_args) {
    items.push_back(value);
    entries.emplace_back(name, value);
  }
  if (shapes.kind() == Kind::list) return list(std::move(items));
  if (shapes.kind() == Kind::tuple) return tuple(std::move(items));
  return dict(std::move(entries));
}

void require_container(const DynamicShapes& shapes) {
  if (!shapes.is_none() && !shapes.is_sequence() && shapes.kind() != Kind::dict)
    throw UserError("expected dynamic_shapes to be dict, tuple, or list, got " + type_text(shapes));
}

void collect_dims(const DynamicShapes& shapes, std::vector<NamedDim>& out) {
  const auto add = [&](const Dim& dim) {
    if (std::ranges::find(out, dim.name(), &NamedDim::name) != out.end()) return;
    NamedDim named{dim.name(), dim.range(), {}};
    if (dim.is_derived()) named.derived = {dim.root().name(), dim.multiplier(), dim.offset()};
    out.push_back(std::move(named));
  };
  if (shapes.is_sequence()) {
    for (const DynamicShapes& item : shapes.items()) collect_dims(item, out);
  } else if (shapes.kind() == Kind::dict) {
    for (const auto& [key, entry] : shapes.entries()) collect_dims(entry, out);
  } else if (shapes.kind() == Kind::dim) {
    add(shapes.dim());
    add(shapes.dim().root());
  }
}

}  // namespace

std::string python_type_text(const Value& value) {
  const auto type = [&]() -> std::string {
    switch (value.kind()) {
      case Value::Kind::none: return "NoneType";
      case Value::Kind::boolean: return "bool";
      case Value::Kind::integer: return "int";
      case Value::Kind::floating: return "float";
      case Value::Kind::complex: return "complex";
      case Value::Kind::string: return "str";
      case Value::Kind::slice: return "slice";
      case Value::Kind::tensor: return "torch.Tensor";
      case Value::Kind::dtype: return "torch.dtype";
      case Value::Kind::device: return "torch.device";
      case Value::Kind::layout: return "torch.layout";
      case Value::Kind::memory_format: return "torch.memory_format";
      case Value::Kind::generator: return "torch._C.Generator";
      case Value::Kind::node: return "torch.fx.node.Node";
      case Value::Kind::list: return "list";
      case Value::Kind::tuple: return "tuple";
      case Value::Kind::dict: return value.to_dict().ordered ? "collections.OrderedDict" : "dict";
      case Value::Kind::structure: return value.to_struct().type;
    }
    throw InternalError("Value: unknown kind");
  };
  return "<class '" + type() + "'>";
}

void walk_shapes(const Value& value, const DynamicShapes& shapes, const KeyPath& path, const ShapeLeaf& leaf) {
  const FlatTree flat = tree_flatten(value);
  walk(flat.spec, flat.leaves, shapes, path, leaf);
}

Kwargs combine_args(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs) {
  static const std::vector<std::string> anything = {"*args", "**kwargs"};
  const std::vector<std::string>& parameters = names.empty() ? anything : names;
  Kwargs out;
  size_t next = 0;
  std::set<std::string> used;
  for (const std::string& parameter : parameters) {
    if (parameter.starts_with("**")) {
      std::vector<std::pair<Value, Value>> rest;
      for (const auto& [name, value] : kwargs)
        if (std::ranges::find(parameters, name) == parameters.end()) {
          rest.emplace_back(name, value);
          used.insert(name);
        }
      if (!rest.empty()) out.emplace_back(parameter.substr(2), dict(std::move(rest)));
    } else if (parameter.starts_with("*")) {
      if (next < args.size())
        out.emplace_back(parameter.substr(1), tuple(Values(args.begin() + static_cast<std::ptrdiff_t>(next), args.end())));
      next = args.size();
    } else {
      const auto given = std::ranges::find(kwargs, parameter, [](const auto& entry) { return entry.first; });
      if (next < args.size()) {
        if (given != kwargs.end()) throw UserError("multiple values for argument '" + parameter + "'");
        out.emplace_back(parameter, args[next++]);
      } else if (given != kwargs.end()) {
        out.emplace_back(parameter, given->second);
        used.insert(parameter);
      }
    }
  }
  if (next < args.size())
    throw UserError("too many positional arguments: expected at most " + std::to_string(next) + ", got " +
                    std::to_string(args.size()));
  for (const auto& [name, value] : kwargs)
    if (!used.contains(name)) throw UserError("got an unexpected keyword argument '" + name + "'");
  return out;
}

std::vector<CallArgument> call_arguments(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs,
                                         const DynamicShapes& shapes) {
  // The call's arguments are numbered, and the numbers found again among the combined ones.
  Values numbers;
  Kwargs named_numbers;
  for (size_t i = 0; i < args.size(); ++i) numbers.emplace_back(i);
  for (const auto& [name, value] : kwargs) named_numbers.emplace_back(name, args.size() + named_numbers.size());
  const Kwargs combined = combine_args(names, numbers, named_numbers);
  std::vector<CallArgument> out(args.size() + kwargs.size());
  size_t position = 0;
  for (const auto& [name, tree] : combined) {
    DynamicShapes own;
    if (shapes.is_sequence())
      own = shapes.items().at(position);
    else if (shapes.kind() == Kind::dict)
      own = *shapes.find(name);
    ++position;
    const KeyPath path = {{TreeKey::Kind::mapping, name}};
    if (!tree.is_container()) {
      CallArgument& argument = out.at(static_cast<size_t>(tree.to_int()));
      argument.path = path;
      argument.shapes = own;
      continue;
    }
    walk_shapes(tree, DynamicShapes(), path, [&](const KeyPath& at, const Value& number, const DynamicShapes&) {
      CallArgument& argument = out.at(static_cast<size_t>(number.to_int()));
      argument.path = at;
      if (own.is_sequence())
        argument.shapes = own.items().at(static_cast<size_t>(at.back().key.to_int()));
      else if (own.kind() == Kind::dict)
        argument.shapes = *own.find(at.back().key);
    });
  }
  for (size_t i = 0; i < out.size(); ++i) out[i].value = i < args.size() ? args[i] : kwargs[i - args.size()].second;
  return out;
}

void check_dynamic_shapes(const Kwargs& combined_args, const DynamicShapes& shapes) {
  require_container(shapes);
  if (shapes.empty()) return;
  if (shapes.kind() == Kind::dict) check_names(combined_args, shapes);
  const FlatTree flat = tree_flatten(arguments_like(combined_args, shapes));
  compare(flat.spec, shapes, {});
  Checker checker;
  walk(flat.spec, flat.leaves, shapes, {},
       [&](const KeyPath& path, const Value& value, const DynamicShapes& shape) { checker.leaf(path, value, shape); });
}

std::vector<DynamicShapes> flatten_dynamic_shapes(const Kwargs& combined_args, const DynamicShapes& shapes) {
  check_dynamic_shapes(combined_args, shapes);
  std::vector<DynamicShapes> out;
  walk_shapes(arguments_like(combined_args, shapes), shapes.empty() ? DynamicShapes() : shapes, {},
              [&](const KeyPath&, const Value&, const DynamicShapes& shape) { out.push_back(shape); });
  return out;
}

std::vector<NamedDim> named_dims(const DynamicShapes& shapes) {
  std::vector<NamedDim> out;
  collect_dims(shapes, out);
  return out;
}

}  // namespace calque
