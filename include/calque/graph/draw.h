// Graphs for people and tools: a table, Graphviz's DOT, JSON, a picture, and a page for a browser. Picture and page show modules as
// boxes that hold what they call, and weights in the boxes of the operators that take them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "calque/graph/graph.h"

namespace calque {

// opcode, name, target, args, kwargs: what Graph.print_tabular prints.
std::string tabular(const Graph& graph);

struct DrawOptions {
  std::string name = "graph";
  bool include_get_attr = true;  // parameters and buffers
  bool skip_unused_inputs = false;
  // Of pictures and pages: the depth down to which modules are open; by default as many as give a picture of a readable size.
  std::optional<size_t> depth = {};
  // Of pictures and pages: nodes that stand for parameters and buffers, with their paths in the model. A get_attr node that is not
  // here stands for its target.
  std::map<std::string, std::string, std::less<>> weights = {};
};
std::string to_dot(const Graph& graph, const DrawOptions& options = {});

// {"nodes": [{"name", "op", "target", "args", "kwargs", "users", "val", ...}], "symbols": [...]}; nodes in arguments are
// {"node": name}. `indent` below 0 gives one line.
std::string to_json(const Graph& graph, int indent = -1);

// One picture: layers of boxes, lines between them; light or dark as the viewer is.
std::string to_svg(const Graph& graph, const DrawOptions& options = {});

// One page with nothing outside it: modules open by a click; drag, wheel and keys move it; type to search; click for details.
std::string to_html(const Graph& graph, const DrawOptions& options = {});
// Both graphs side by side, with the nodes that differ in colours.
std::string to_html(const Graph& a, const DrawOptions& options_a, const Graph& b, const DrawOptions& options_b);

}  // namespace calque
