// Graphs for people and tools: a table, Graphviz's DOT, JSON, and a self-contained HTML page that pans, zooms and searches.
#pragma once

#include <string>

#include "calque/graph/graph.h"

namespace calque {

// opcode, name, target, args, kwargs: what Graph.print_tabular prints.
std::string tabular(const Graph& graph);

struct DrawOptions {
  std::string name = "graph";
  bool include_get_attr = true;  // parameters and buffers
  bool skip_unused_inputs = false;
};
std::string to_dot(const Graph& graph, const DrawOptions& options = {});

// {"nodes": [{"name", "op", "target", "args", "kwargs", "users", "val", ...}], "symbols": [...]}; nodes in arguments are
// {"node": name}. `indent` below 0 gives one line.
std::string to_json(const Graph& graph, int indent = -1);

// One page with nothing outside it: drag to pan, wheel to zoom, type to search, click for a node's details.
std::string to_html(const Graph& graph, const DrawOptions& options = {});

}  // namespace calque
