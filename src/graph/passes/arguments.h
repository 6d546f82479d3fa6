// The arguments of a call in one form: by the operator's schema, with defaults.
#pragma once

#include "calque/graph/node.h"

namespace calque {

// All arguments in the schema's order, defaults where none is given; without a schema positional ones first, then the
// values of keywords in their order.
inline Values flat_arguments(const Node& n) {
  const Operator* op = n.op();
  if (!op) {
    Values all = n.args();
    for (const auto& [key, v] : n.kwargs()) all.push_back(v);
    return all;
  }
  Values all;
  const auto& schema = op->schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (const Value* given = n.find_kwarg(schema[i].name))
      all.push_back(*given);
    else if (!schema[i].keyword_only && i < n.args().size())
      all.push_back(n.args()[i]);
    else
      all.push_back(schema[i].default_value ? *schema[i].default_value : Value());
  }
  return all;
}

}  // namespace calque
