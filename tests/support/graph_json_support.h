// Traced graphs as JSON: what the drivers in tests/peers compare with PyTorch's. Symbolic numbers as srepr has them,
// which sympy can read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calque/trace/make_fx.h"

namespace calque {

nlohmann::ordered_json value_json(const Value& v, bool with_data);
// Nodes, attributes and, where sizes are symbolic, guards, deferred asserts and symbols.
nlohmann::ordered_json graph_json(const TracedGraph& g);

}  // namespace calque
