// Dynamic shapes found from the inputs themselves: by tensor, and by comparing several examples.
#include <algorithm>

#include "calque/base/error.h"
#include "calque/export/dynamic_shapes.h"
#include "calque/op/tree.h"

namespace calque {

namespace {

// A spec with the structure of the inputs and these leaves; structures become lists.
DynamicShapes like(const TreeSpec& spec, const DynamicShapes*& next) {
  if (spec.is_leaf()) return *next++;
  DynamicShapes::Items items;
  for (const TreeSpec& child : spec.children()) items.push_back(like(child, next));
  switch (spec.kind()) {
    case TreeSpec::Kind::tuple: return DynamicShapes::tuple(std::move(items));
    case TreeSpec::Kind::dict:
    case TreeSpec::Kind::ordered_dict: {
      DynamicShapes::Entries entries;
      for (size_t i = 0; i < items.size(); ++i) entries.emplace_back(spec.dict_keys()[i], std::move(items[i]));
      return DynamicShapes::dict(std::move(entries));
    }
    case TreeSpec::Kind::list:
    case TreeSpec::Kind::structure: return DynamicShapes::list(std::move(items));
    case TreeSpec::Kind::leaf: break;
  }
  throw InternalError("TreeSpec: unknown kind");
}

Value as_dict(const Kwargs& combined_args) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : combined_args) entries.emplace_back(name, value);
  return dict(std::move(entries));
}

// What varies among the values of one place.
DynamicShapes varying(const Values& values) {
  const Value& first = values[0];
  const bool same_kind = std::ranges::all_of(values, [&](const Value& v) { return v.kind() == first.kind(); });
  if (!same_kind)
    throw UserError("The following inputs were found to have differing types, so they cannot be marked as dynamic: " +
                    tuple(values).str() + ".");
  if (std::ranges::all_of(values, [&](const Value& v) { return v.equals(first); })) return {};
  if (first.kind() == Value::Kind::integer) return Dim::DYNAMIC;
  throw UserError("The following inputs were found to have differing values, but they cannot be marked as dynamic: " +
                  tuple(values).str() + ".");
}

DynamicShapes varying_leaf(const Values& leaves, const KeyPath& path) {
  if (!std::ranges::all_of(leaves, &Value::is_tensor)) return varying(leaves);
  const size_t dims = leaves[0].to_tensor().sym_sizes().size();
  DynamicShapes::Items items;
  for (const Value& leaf : leaves)
    if (leaf.to_tensor().sym_sizes().size() != dims)
      throw UserError("the additional inputs at `inputs" + keystr(path) + "` have " +
                      std::to_string(leaf.to_tensor().sym_sizes().size()) + " dimensions, expected " + std::to_string(dims));
  for (size_t i = 0; i < dims; ++i) {
    Values sizes;
    for (const Value& leaf : leaves) sizes.emplace_back(leaf.to_tensor().sym_sizes()[i]);
    items.push_back(varying(sizes));
  }
  return DynamicShapes::tuple(std::move(items));
}

}  // namespace

void ShapesCollection::set(const Tensor& tensor, DynamicShapes shape) {
  if (!tensor.defined()) throw UserError("Cannot assign shape to non-tensor or non-_IntWrapper type <class 'NoneType'>");
  for (const auto& [known, given] : shapes_)
    if (&known.impl() == &tensor.impl()) {
      if (!given.equals(shape))
        throw UserError("Shapes assigned to input do not match: expected " + given.str() + ", got " + shape.str());
      return;
    }
  shapes_.emplace_back(tensor, std::move(shape));
}

void ShapesCollection::set(const Tensor& tensor, int64_t dimension, DynamicShapes entry) {
  for (auto& [known, given] : shapes_)
    if (&known.impl() == &tensor.impl()) {
      if (given.kind() != DynamicShapes::Kind::dict)
        throw UserError("dimension " + std::to_string(dimension) + " was assigned to an input whose whole shape is " +
                        given.str());
      DynamicShapes::Entries entries = given.entries();
      std::erase_if(entries, [&](const auto& e) { return e.first.equals(dimension); });
      entries.emplace_back(dimension, std::move(entry));
      given = DynamicShapes::dict(std::move(entries));
      return;
    }
  set(tensor, DynamicShapes::dict({{dimension, std::move(entry)}}));
}

DynamicShapes ShapesCollection::dynamic_shapes(const Kwargs& combined_args) const {
  const FlatTree flat = tree_flatten(as_dict(combined_args));
  std::vector<DynamicShapes> leaves;
  std::vector<bool> found(shapes_.size());
  for (const Value& leaf : flat.leaves) {
    leaves.emplace_back();
    if (!leaf.is_tensor()) continue;
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (&shapes_[i].first.impl() == &leaf.to_tensor().impl()) {
        leaves.back() = shapes_[i].second;
        found[i] = true;
      }
  }
  if (std::ranges::find(found, false) != found.end())
    throw UserError(
        "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing "
        "them as args? Maybe such tensors are contained in classes that were not registered with pytree?");
  const DynamicShapes* next = leaves.data();
  return like(flat.spec, next);
}

void AdditionalInputs::add(Values args, Kwargs kwargs) { examples_.emplace_back(std::move(args), std::move(kwargs)); }

DynamicShapes AdditionalInputs::dynamic_shapes(const std::vector<std::string>& names, const Values& args,
                                               const Kwargs& kwargs) const {
  const FlatTreeWithPaths own = tree_flatten_with_path(as_dict(combine_args(names, args, kwargs)));
  std::vector<FlatTree> others;
  for (const auto& [other_args, other_kwargs] : examples_) {
    others.push_back(tree_flatten(as_dict(combine_args(names, other_args, other_kwargs))));
    if (!(others.back().spec == own.spec))
      throw UserError("the structure of additional inputs differs from that of the inputs: expected " + own.spec.str() +
                      ", found " + others.back().spec.str());
  }
  std::vector<DynamicShapes> leaves;
  for (size_t i = 0; i < own.leaves.size(); ++i) {
    Values values = {own.leaves[i].second};
    for (const FlatTree& other : others) values.push_back(other.leaves[i]);
    leaves.push_back(varying_leaf(values, own.leaves[i].first));
  }
  const DynamicShapes* next = leaves.data();
  return like(own.spec, next);
}

}  // namespace calque
