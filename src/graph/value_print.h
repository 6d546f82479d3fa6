// Printing Values that hold nodes: the walk through containers is Python's repr, the leaves are the caller's.
#pragma once

#include <functional>
#include <string>

#include "calque/graph/node.h"

namespace calque {

struct ValuePrinter {
  std::function<std::string(const Node&)> node = [](const Node& n) { return n.name(); };
  std::function<std::string(const Value&)> leaf = [](const Value& v) { return v.str(); };
  std::function<std::string(const StructValue&)> structure;  // Python's repr of a named tuple when not given

  std::function<std::string(const Value&)> dict;  // as everything else when not given

  std::string operator()(const Value& value) const;
  std::string items(const Values& values) const;  // "a, b"
  std::string tuple(const Values& values) const;  // "(a,)"
};

// "torch.float32" prints as itself, strings without quotes, ...: Python's str().
std::string python_str(const Value& value);

}  // namespace calque
