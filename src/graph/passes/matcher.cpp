#include <algorithm>
#include <unordered_set>

#include "arguments.h"
#include "calque/base/error.h"
#include "calque/graph/rewrite.h"

namespace calque {
namespace {

// The same kind and the same value. Sequences are compared item by item, whatever their kind.
bool same_literal(const Value& a, const Value& b) { return a.kind() == b.kind() && a.equals(b); }
bool is_sequence(const Value& v) { return v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple; }

std::vector<std::string> keywords(const Node& n) {
  std::vector<std::string> out;
  for (const auto& [key, v] : n.kwargs()) out.push_back(key);
  return out;
}

bool is_compute(const Node& n) { return n.kind() != NodeKind::placeholder && n.kind() != NodeKind::output; }

}  // namespace

// One search of one graph. `match_` is the assignment so far; what a failed attempt added is taken back.
struct SubgraphMatcher::Search {
  const SubgraphMatcher& matcher;
  const Graph& graph;
  std::vector<Match> matches;
  std::vector<std::vector<Node*>> candidates;  // by anchor
  NodeMapping map;
  std::unordered_set<const Node*> taken;
  std::vector<const Node*> trail;  // the pattern's nodes in the order in which they were assigned

  void assign(const Node* pattern, const Value& value) {
    map[pattern] = value;
    if (value.is_node()) taken.insert(value.to_node());
    trail.push_back(pattern);
  }
  void undo(size_t length) {
    while (trail.size() > length) {
      const auto at = map.find(trail.back());
      if (at->second.is_node()) taken.erase(at->second.to_node());
      map.erase(at);
      trail.pop_back();
    }
  }

  bool nodes_are_equal(const Node& p, const Node& g) const {
    if (!matcher.options_.match_placeholder && p.kind() == NodeKind::placeholder) return true;
    if (p.kind() != g.kind()) return false;
    switch (p.kind()) {
      case NodeKind::placeholder:
      case NodeKind::output: return true;
      case NodeKind::get_attr: {
        const GraphOwner* mine = p.graph().owner();
        const GraphOwner* theirs = g.graph().owner();
        if (!mine || !theirs) return p.target() == g.target();
        return mine->attr(p.target().text()).is_tensor() && theirs->attr(g.target().text()).is_tensor();
      }
      case NodeKind::call_function:
      case NodeKind::call_module:
      case NodeKind::call_method: break;
    }
    return p.target() == g.target();
  }

  bool match_node(const Node& p, Node& g) {
    if (const auto at = map.find(&p); at != map.end()) return at->second.is_node() && at->second.to_node() == &g;
    if (taken.contains(&g) || !nodes_are_equal(p, g)) return false;
    const size_t before = trail.size();
    assign(&p, &g);
    if (p.kind() == NodeKind::placeholder) return true;
    const bool same_form = p.args().size() == g.args().size() && keywords(p) == keywords(g);
    bool found = false;
    if (same_form || p.op()) {
      Values left = p.args();
      Values right = g.args();
      if (same_form) {
        for (const auto& [key, v] : p.kwargs()) left.push_back(v);
        for (const auto& [key, v] : g.kwargs()) right.push_back(v);
      } else {
        left = flat_arguments(p);
        right = flat_arguments(g);
      }
      found = match_values(left, right);
    }
    if (!found) undo(before);
    return found;
  }

  bool match_values(const Values& p, const Values& g) {
    if (p.size() != g.size()) return false;
    for (size_t i = 0; i < p.size(); ++i)
      if (!match_value(p[i], g[i])) return false;
    return true;
  }

  bool match_value(const Value& p, const Value& g) {
    if (p.is_node() && g.is_node()) return match_node(*p.to_node(), *g.to_node());
    if (is_sequence(p) && is_sequence(g)) return match_values(p.to_items(), g.to_items());
    if (p.is_node()) {
      const Node* pattern = p.to_node();
      if (pattern->kind() != NodeKind::placeholder) return false;
      if (const auto at = map.find(pattern); at != map.end()) return same_literal(at->second, g);
      assign(pattern, g);
      return true;
    }
    return matcher.options_.ignore_literals || (!g.is_node() && same_literal(p, g));
  }

  void backtrack(size_t anchor) {
    if (anchor == candidates.size()) {
      Match m;
      m.anchors = matcher.anchors_;
      m.nodes_map = map;
      for (const Node* p : matcher.placeholders_) {
        const auto at = map.find(p);
        if (at == map.end()) return;  // a placeholder that nothing reaches
        m.placeholder_nodes.push_back(at->second);
      }
      for (const Node* p : matcher.returning_) {
        const auto at = map.find(p);
        if (at == map.end() || !at->second.is_node()) return;
        m.returning_nodes.push_back(at->second.to_node());
      }
      matches.push_back(std::move(m));
      return;
    }
    const size_t before = trail.size();
    for (Node* candidate : candidates[anchor]) {
      if (match_node(*matcher.anchors_[anchor], *candidate)) backtrack(anchor + 1);
      undo(before);
    }
  }

  // Nobody outside uses a node inside, except what the pattern returns.
  bool is_contained(const Match& m) const {
    std::unordered_set<const Node*> inside;
    for (const auto& [p, g] : m.nodes_map)
      if (p->kind() != NodeKind::placeholder && g.is_node()) inside.insert(g.to_node());
    for (const auto& [p, g] : m.nodes_map) {
      if (p->kind() == NodeKind::placeholder || !g.is_node()) continue;
      if (std::find(matcher.returning_.begin(), matcher.returning_.end(), p) != matcher.returning_.end()) continue;
      for (const Node* user : g.to_node()->users())
        if (!inside.contains(user)) return false;
    }
    return true;
  }

  // Replaced by one node, would the match depend on itself through nodes outside?
  bool makes_cycle(const Match& m) const {
    std::unordered_set<const Node*> inside;
    const Node* last = nullptr;
    for (const auto& [p, g] : m.nodes_map)
      if (is_compute(*p) && g.is_node()) {
        inside.insert(g.to_node());
        if (!last || last->comes_before(*g.to_node())) last = g.to_node();
      }
    std::vector<const Node*> stack;
    std::unordered_set<const Node*> seen;
    const auto visit = [&](const Node* n, bool from_inside) {
      for (const Node* user : n->users()) {
        if (inside.contains(user)) {
          if (!from_inside) return true;
          continue;
        }
        // What comes after the last matched node leads nowhere back.
        if (user->comes_before(*last) && seen.insert(user).second) stack.push_back(user);
      }
      return false;
    };
    for (const Node* n : inside) visit(n, true);
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      if (visit(n, false)) return true;
    }
    return false;
  }
};

SubgraphMatcher::SubgraphMatcher(const Graph& pattern, MatchOptions options) : options_(options) {
  if (pattern.nodes().empty()) throw UserError("SubgraphMatcher: the pattern is empty");
  const Node* output = pattern.output_node();
  for (const Node* n : pattern.nodes()) {
    const bool is_pure = n->kind() == NodeKind::call_module || !n->is_impure();
    if (n->kind() != NodeKind::output && is_pure && n->users().empty())
      throw UserError("SubgraphMatcher: the pattern has dead code: " + n->str());
    if (n->kind() == NodeKind::placeholder) placeholders_.push_back(n);
  }
  for (const Node* n : output->all_input_nodes()) {
    returning_.push_back(n);
    if (!options_.match_output && n->users().size() == 1) anchors_.push_back(n);
  }
  if (options_.match_output) anchors_ = {output};
}

std::vector<Match> SubgraphMatcher::match(const Graph& graph) const {
  Search search{*this, graph, {}, {}, {}, {}, {}};
  const std::vector<Node*> all = graph.node_list();
  for (const Node* anchor : anchors_) {
    std::vector<Node*> found;
    for (Node* n : all)
      if (search.nodes_are_equal(*anchor, *n)) found.push_back(n);
    if (found.empty()) return {};
    search.candidates.push_back(std::move(found));
  }
  if (search.candidates.empty()) return {};
  search.backtrack(0);
  std::vector<Match> out;
  std::unordered_set<const Node*> used;
  for (Match& m : search.matches) {
    if (!search.is_contained(m) || search.makes_cycle(m)) continue;
    if (options_.remove_overlapping_matches) {
      const auto overlaps = [&](const auto& entry) {
        return is_compute(*entry.first) && entry.second.is_node() && used.contains(entry.second.to_node());
      };
      if (std::any_of(m.nodes_map.begin(), m.nodes_map.end(), overlaps)) continue;
      for (const auto& [p, g] : m.nodes_map)
        if (is_compute(*p) && g.is_node()) used.insert(g.to_node());
    }
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace calque
