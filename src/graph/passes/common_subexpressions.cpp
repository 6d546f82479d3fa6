#include <unordered_map>
#include <unordered_set>

#include "arguments.h"
#include "calque/graph/passes.h"
#include "mutation.h"

namespace calque {
namespace {

size_t combined(size_t seed, size_t h) { return seed ^ (h + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2)); }

size_t hash_of(const Value& v) {
  size_t h = static_cast<size_t>(v.kind());
  switch (v.kind()) {
    case Value::Kind::node: return combined(h, std::hash<const void*>()(v.to_node()));
    case Value::Kind::integer: return combined(h, static_cast<size_t>(v.to_sym_int().word()));
    case Value::Kind::string: return combined(h, std::hash<std::string>()(v.to_string()));
    case Value::Kind::list:
    case Value::Kind::tuple:
      for (const Value& item : v.to_items()) h = combined(h, hash_of(item));
      return h;
    case Value::Kind::structure:
      for (const Value& item : v.to_struct().items) h = combined(h, hash_of(item));
      return h;
    case Value::Kind::slice:
      return combined(combined(combined(h, hash_of(v.to_slice().start)), hash_of(v.to_slice().stop)),
                      hash_of(v.to_slice().step));
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::dict: break;  // equals decides
  }
  return h;
}

struct Call {
  Target target;
  Values args;
  std::vector<std::string> keywords;  // where there is no schema
  NodeKind kind;
  uint32_t region;
  size_t hash;

  bool operator==(const Call& other) const {
    if (kind != other.kind || region != other.region || !(target == other.target) || args.size() != other.args.size() ||
        keywords != other.keywords)
      return false;
    for (size_t i = 0; i < args.size(); ++i)
      if (!args[i].equals(other.args[i])) return false;
    return true;
  }
};
struct CallHash {
  size_t operator()(const Call& c) const { return c.hash; }
};

Call call_of(const Node& n, uint32_t region) {
  Call c{n.target(), flat_arguments(n), {}, n.kind(), region, 0};
  if (!n.op())
    for (const auto& [key, v] : n.kwargs()) c.keywords.push_back(key);
  c.hash = combined(c.target.hash(), region);
  for (const Value& a : c.args) c.hash = combined(c.hash, hash_of(a));
  return c;
}

bool may_merge(const Node& n, const Mutations& mutations) {
  if (n.kind() == NodeKind::call_method) return !mutations.is_written(n) && !n.target().text().ends_with('_');
  if (n.kind() != NodeKind::call_function || n.target().is_text()) return false;
  return !n.is_impure() && !mutations.is_written(n);
}

}  // namespace

bool eliminate_common_subexpressions(Graph& graph, const NodePredicate& banned, bool keep_outputs) {
  const Mutations mutations(graph);
  std::unordered_set<const Node*> outputs;
  if (keep_outputs)
    for (const Node* n : graph.find_nodes(NodeKind::output))
      for (size_t i = 0; i < n->num_input_nodes(); ++i) outputs.insert(n->input_node(i));
  std::unordered_map<Call, Node*, CallHash> first;
  bool changed = false;
  for (Node* n : graph.nodes()) {
    if (!may_merge(*n, mutations) || outputs.contains(n) || (banned && banned(*n))) continue;
    const auto [at, fresh] = first.try_emplace(call_of(*n, mutations.region(*n)), n);
    if (fresh) continue;
    n->replace_all_uses_with(at->second);
    graph.erase_node(n);
    changed = true;
  }
  graph.lint();
  return changed;
}

bool eliminate_dead_code(Graph& graph, const NodePredicate& is_impure) { return graph.eliminate_dead_code(is_impure); }

}  // namespace calque
