// Finding a small graph inside a larger one, and replacing it. Patterns are graphs whose placeholders match anything;
// most are written as text:
//
//   replace_pattern(graph, R"(
//     %x = placeholder
//     %w = placeholder
//     %t = aten.t.default(%w)
//     %y = aten.mm.default(%x, %t)
//     return %y)", R"( ... )");
//
// Nodes inside a match may be used by the match alone; what the pattern returns may be used by others too.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "calque/graph/graph.h"

namespace calque {

class GraphModule;

struct Match {
  std::vector<const Node*> anchors;  // the pattern's last nodes
  NodeMapping nodes_map;             // from the pattern's nodes to nodes (or, for placeholders, literals) of the graph
  Values placeholder_nodes;          // what the pattern's placeholders stand for
  std::vector<Node*> returning_nodes;
};

struct MatchOptions {
  bool match_output = false;       // the pattern's output must be the graph's
  bool match_placeholder = false;  // placeholders match placeholders only
  bool remove_overlapping_matches = true;
  bool ignore_literals = false;  // any number matches any other
};

class SubgraphMatcher {
 public:
  // The pattern must outlive the matcher and its matches. UserError for an empty pattern and for one with dead code.
  explicit SubgraphMatcher(const Graph& pattern, MatchOptions options = {});
  std::vector<Match> match(const Graph& graph) const;

 private:
  struct Search;
  MatchOptions options_;
  std::vector<const Node*> anchors_;
  std::vector<const Node*> returning_;
  std::vector<const Node*> placeholders_;
};

struct Replaced {
  Node* anchor;  // of the graph; erased by now
  NodeMapping nodes_map;
  std::vector<Node*> replacements;  // the nodes that were made
};

struct ReplaceOptions {
  // All must agree: (match, graph, pattern).
  std::vector<std::function<bool(const Match&, const Graph&, const Graph&)>> filters;
  // Makes the replacement of one match, instead of the common one.
  std::function<Graph(const Match&, const Graph&, const Graph&)> replacement_callback;
  bool ignore_literals = false;
};

// Every match that does not overlap an earlier one is replaced by `replacement`, whose placeholders take the values of the
// pattern's. Gives what was replaced; the list is empty when nothing matched.
std::vector<Replaced> replace_pattern(Graph& graph, const Graph& pattern, const Graph& replacement,
                                      const ReplaceOptions& options = {});
std::vector<Replaced> replace_pattern(Graph& graph, std::string_view pattern, std::string_view replacement,
                                      const ReplaceOptions& options = {});
// Modules and tensors that the replacement refers to are copied into `module`; submodules that nothing refers to any more
// are deleted from it.
std::vector<Replaced> replace_pattern(GraphModule& module, const GraphModule& pattern, const GraphModule& replacement,
                                      const ReplaceOptions& options = {});

}  // namespace calque
