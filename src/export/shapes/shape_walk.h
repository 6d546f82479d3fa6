// The walk over a call's arguments beside the dynamic shapes that were given for them.
#pragma once

#include <functional>
#include <string>

#include "calque/export/dynamic_shapes.h"
#include "calque/op/tree.h"

namespace calque {

// One argument of a call: where it stands among the combined arguments, and what the user said of it.
struct CallArgument {
  KeyPath path;  // ['x'], or ['args'][1] and ['kwargs']['z'] for those without a name of their own
  Value value;
  DynamicShapes shapes;
};
// In the order of the call: positional ones, then keyword ones.
std::vector<CallArgument> call_arguments(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs,
                                         const DynamicShapes& shapes);

// Calls `leaf` for each leaf of `value` with its path and what is said of it. The structures must fit.
using ShapeLeaf = std::function<void(const KeyPath& path, const Value& leaf, const DynamicShapes& shape)>;
void walk_shapes(const Value& value, const DynamicShapes& shapes, const KeyPath& path, const ShapeLeaf& leaf);

std::string python_type_text(const Value& value);  // "<class 'str'>"

}  // namespace calque
