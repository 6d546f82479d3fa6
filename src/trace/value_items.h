// One level of a Value: the items of a list, tuple, dict or structure and the bounds of a slice. (A tree's leaves are
// tensor/tree.h's; there a slice is a leaf and a structure may leave fields out.)
#pragma once

#include "calque/op/value.h"

namespace calque {

// The same container with f(item) for each item; anything else as it is.
template <class F>
Value map_items(const Value& v, F&& f) {
  switch (v.kind()) {
    case Value::Kind::list:
    case Value::Kind::tuple: {
      Values items;
      items.reserve(v.to_items().size());
      for (const Value& item : v.to_items()) items.push_back(f(item));
      return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
    }
    case Value::Kind::dict: {
      DictValue d = v.to_dict();
      for (auto& [key, item] : d.items) item = f(item);
      return d;
    }
    case Value::Kind::structure: {
      StructValue s = v.to_struct();
      for (Value& item : s.items) item = f(item);
      return s;
    }
    case Value::Kind::slice: return SliceValue{f(v.to_slice().start), f(v.to_slice().stop), f(v.to_slice().step)};
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node: return v;
  }
  return v;
}

}  // namespace calque
