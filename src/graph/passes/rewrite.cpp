#include "calque/graph/rewrite.h"

#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/text.h"

namespace calque {
namespace {

void replace_uses(Node& node, const Value& value) {
  const NodeFn map = [&](Node* x) { return x == &node ? value : Value(x); };
  for (Node* user : node.users().list()) {
    if (value.is_node())
      user->replace_input_with(&node, value.to_node());
    else
      user->set_args_kwargs(map_nodes(user->args(), map), map_nodes(user->kwargs(), map));
  }
}

// Before the first user of what the match gives; without users behind the last of it.
Node* insertion_point(const Match& match) {
  Node* first = nullptr;
  Node* last = nullptr;
  for (Node* n : match.returning_nodes) {
    if (!last || last->comes_before(*n)) last = n;
    for (Node* user : n->users())
      if (!first || user->comes_before(*first)) first = user;
  }
  return first ? first : last->next();
}

Values as_list(const Value& result) {
  const bool is_sequence = result.kind() == Value::Kind::list || result.kind() == Value::Kind::tuple;
  return is_sequence ? result.to_items() : Values{result};
}

class Replacing {
 public:
  Replacing(Graph& graph, const Graph& pattern) : graph_(graph), pattern_(pattern) {}

  Replaced replace(Match& match, const Graph& replacement) {
    const std::vector<Node*> placeholders = replacement.placeholders();
    if (placeholders.size() != match.placeholder_nodes.size())
      throw UserError("replace_pattern: the pattern has " + std::to_string(match.placeholder_nodes.size()) +
                      " placeholders, the replacement " + std::to_string(placeholders.size()));
    // An earlier replacement may have taken the place of a node that this match reads.
    for (auto& [p, value] : match.nodes_map) value = current(value);
    NodeMapping mapping;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      match.placeholder_nodes[i] = current(match.placeholder_nodes[i]);
      mapping.emplace(placeholders[i], match.placeholder_nodes[i]);
    }
    const uint32_t first_new = graph_.id_bound();
    std::optional<Value> result;
    {
      Node* before = insertion_point(match);
      const auto scope = before ? graph_.inserting_before(before) : graph_.inserting_after();
      result = graph_.graph_copy(replacement, mapping);
    }
    const Values results = result ? as_list(*result) : Values{};
    if (results.size() != match.returning_nodes.size())
      throw UserError("replace_pattern: the pattern gives " + std::to_string(match.returning_nodes.size()) +
                      " values, the replacement " + std::to_string(results.size()));
    Replaced out{match.nodes_map.at(match.anchors.at(0)).to_node(), match.nodes_map, {}};
    for (const Node* n : replacement.nodes())
      if (const auto at = mapping.find(n); at != mapping.end() && at->second.is_node() &&
                                           at->second.to_node()->id() >= first_new &&
                                           &at->second.to_node()->graph() == &graph_)
        out.replacements.push_back(at->second.to_node());
    for (size_t i = 0; i < results.size(); ++i) {
      replace_uses(*match.returning_nodes[i], results[i]);
      changed_[match.returning_nodes[i]] = results[i];
    }
    for (const Node* p : pattern_.nodes().reversed())
      if (p->kind() != NodeKind::placeholder && p->kind() != NodeKind::output) {
        Node* gone = match.nodes_map.at(p).to_node();
        if (gone->users().empty()) graph_.erase_node(gone);
      }
    return out;
  }

 private:
  Value current(Value value) const {
    while (value.is_node()) {
      const auto at = changed_.find(value.to_node());
      if (at == changed_.end()) break;
      value = at->second;
    }
    return value;
  }

  Graph& graph_;
  const Graph& pattern_;
  NodeMapping changed_;
};

}  // namespace

std::vector<Replaced> replace_pattern(Graph& graph, const Graph& pattern, const Graph& replacement,
                                      const ReplaceOptions& options) {
  MatchOptions match_options;
  match_options.ignore_literals = options.ignore_literals;
  std::vector<Match> matches = SubgraphMatcher(pattern, match_options).match(graph);
  std::erase_if(matches, [&](const Match& m) {
    return !std::all_of(options.filters.begin(), options.filters.end(), [&](const auto& f) { return f(m, graph, pattern); });
  });
  std::vector<Replaced> out;
  Replacing replacing(graph, pattern);
  for (Match& m : matches) {
    if (options.replacement_callback)
      out.push_back(replacing.replace(m, options.replacement_callback(m, graph, pattern)));
    else
      out.push_back(replacing.replace(m, replacement));
  }
  if (!graph.owner()) graph.lint();  // with an owner, what the replacement refers to may still have to come
  return out;
}

std::vector<Replaced> replace_pattern(Graph& graph, std::string_view pattern, std::string_view replacement,
                                      const ReplaceOptions& options) {
  const Graph from = parse_graph(pattern, graph.shape_env());
  const Graph to = parse_graph(replacement, graph.shape_env());
  return replace_pattern(graph, from, to, options);
}

std::vector<Replaced> replace_pattern(GraphModule& module, const GraphModule& pattern, const GraphModule& replacement,
                                      const ReplaceOptions& options) {
  std::vector<Replaced> out = replace_pattern(module.graph(), pattern.graph(), replacement.graph(), options);
  module.delete_all_unused_submodules();
  for (const Node* n : module.graph().nodes()) {
    if (n->kind() != NodeKind::call_module && n->kind() != NodeKind::get_attr) continue;
    const std::string& path = n->target().text();
    if (module.find_tensor(path) || module.find_submodule(path)) continue;
    if (replacement.find_submodule(path))
      module.add_submodule(path, replacement.get_submodule(path).deep_copy());
    else
      module.copy_attribute(replacement, path);
  }
  module.graph().lint();
  return out;
}

}  // namespace calque
