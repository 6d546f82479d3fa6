// One level of a Value: the items of a list, tuple, dict or structure and the bounds of a slice. (A tree's leaves are
// op/tree.h's; there a slice is a leaf and a structure may leave fields out.)
#pragma once

#include "calque/op/value.h"

namespace calque {

// Whether f(item) holds for one of the items; false of anything that has none.
template <class F>
bool any_item(const Value& v, F&& f) {
  if (v.is_sequence()) {
    for (const Value& item : v.to_items())
      if (f(item)) return true;
  } else if (v.kind() == Value::Kind::dict) {
    for (const auto& [key, item] : v.to_dict().items)
      if (f(item)) return true;
  } else if (v.kind() == Value::Kind::structure) {
    for (const Value& item : v.to_struct().items)
      if (f(item)) return true;
  } else if (v.kind() == Value::Kind::slice) {
    return f(v.to_slice().start) || f(v.to_slice().stop) || f(v.to_slice().step);
  }
  return false;
}

// The same container with f(item) for each item; anything else as it is.
template <class F>
Value map_items(const Value& v, F&& f) {
  if (v.is_sequence()) {
    Values items;
    items.reserve(v.to_items().size());
    for (const Value& item : v.to_items()) items.push_back(f(item));
    return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
  }
  if (v.kind() == Value::Kind::dict) {
    DictValue d = v.to_dict();
    for (auto& [key, item] : d.items) item = f(item);
    return d;
  }
  if (v.kind() == Value::Kind::structure) {
    StructValue s = v.to_struct();
    for (Value& item : s.items) item = f(item);
    return s;
  }
  if (v.kind() == Value::Kind::slice) return SliceValue{f(v.to_slice().start), f(v.to_slice().stop), f(v.to_slice().step)};
  return v;
}

}  // namespace calque
