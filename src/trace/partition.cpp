#include "calque/trace/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/graph/passes.h"
#include "calque/sym/shape_env.h"
#include "trace/min_cut.h"

namespace calque {
namespace {

// A size that data decide has no example.
constexpr int64_t unknown_size = 4096;

bool is_tangent(const Node& n) { return n.kind() == NodeKind::placeholder && n.target().text().starts_with("tangents"); }

int64_t bytes_of(const Value& v, const ShapeEnv* env) {
  if (v.is_tensor()) {
    if (!v.to_tensor().defined()) return 0;
    const SymInt n = v.to_tensor().sym_numel();
    const int64_t elements = n.is_symbolic() ? (env ? env->hint(n).value_or(unknown_size) : unknown_size) : n.as_int();
    return elements * static_cast<int64_t>(item_size(v.to_tensor().dtype()));
  }
  int64_t out = 0;
  if (v.is_sequence())
    for (const Value& item : v.to_items()) out += bytes_of(item, env);
  return out;
}

// A graph whose nodes are known by their place: what the choice is made of.
class Joint {
 public:
  Joint(const GraphModule& module, size_t num_forward) : module_(module), graph_(module.graph().copy()) {
    graph_.eliminate_dead_code();
    eliminate_common_subexpressions(graph_);
    for (const Node* n : std::as_const(graph_).nodes()) {
      index_.emplace(n, nodes.size());
      nodes.push_back(n);
    }
    const Values& outputs = std::as_const(graph_).output_value().to_items();
    if (outputs.size() < num_forward)
      throw UserError(
          fmt::format("partition: expected a joint graph of at least {} outputs, found {}; say how many of its outputs "
                      "are the forward pass's",
                      num_forward, outputs.size()));
    const auto split = outputs.begin() + static_cast<std::ptrdiff_t>(num_forward);
    forward_outputs.assign(outputs.begin(), split);
    backward_outputs.assign(split, outputs.end());
    after_tangent.resize(nodes.size());
    in_forward.resize(nodes.size());
    if (std::none_of(nodes.begin(), nodes.end(), [](const Node* n) { return is_tangent(*n); }))
      throw UserError(
          "partition: expected a joint graph with placeholders tangents_1, ..., found none (trace/joint.h makes one)");
    for (size_t i = 0; i < nodes.size(); ++i) {
      after_tangent[i] = is_tangent(*nodes[i]);
      for (const Node* input : nodes[i]->all_input_nodes()) after_tangent[i] = after_tangent[i] || after_tangent[at(*input)];
    }
    for (const Value& v : forward_outputs) for_each_node(v, [&](const Node* n) { in_forward[at(*n)] = true; });
    for (size_t i = nodes.size(); i-- > 0;) {
      if (nodes[i]->kind() != NodeKind::output && nodes[i]->is_impure() && !after_tangent[i]) in_forward[i] = true;
      if (!in_forward[i]) continue;
      if (after_tangent[i])
        throw UserError("partition: " + nodes[i]->name() +
                        " is needed for the forward pass's outputs and depends on a tangent; is num_forward right?");
      for (const Node* input : nodes[i]->all_input_nodes()) in_forward[at(*input)] = true;
    }
  }

  size_t at(const Node& n) const { return index_.at(&n); }
  const ShapeEnv* env() const { return graph_.shape_env().get(); }
  int64_t bytes(size_t i) const { return bytes_of(nodes[i]->meta.val, env()); }

  // The graph that computes `outputs` from the placeholders `given`, every node as late as its first use allows; `uses` is told
  // of the given ones that it takes.
  std::shared_ptr<GraphModule> extract(const std::vector<const Node*>& given, const Values& outputs,
                                       const std::vector<const Node*>& always) const;

  std::vector<const Node*> nodes;
  Values forward_outputs, backward_outputs;
  std::vector<bool> after_tangent, in_forward;

 private:
  const GraphModule& module_;
  Graph graph_;
  std::map<const Node*, size_t> index_;
};

std::shared_ptr<GraphModule> Joint::extract(const std::vector<const Node*>& given, const Values& outputs,
                                            const std::vector<const Node*>& always) const {
  Graph graph;
  graph.set_shape_env(graph_.shape_env());
  NodeMapping made;
  for (const Node* n : given) {
    Node* p = graph.placeholder(n->name());
    p->meta = n->meta;
    made.emplace(n, p);
  }
  const auto make = [&](const Node* wanted) {
    std::vector<const Node*> waiting{wanted};
    std::map<size_t, const Node*> missing;  // in the order of the joint graph
    while (!waiting.empty()) {
      const Node* n = waiting.back();
      waiting.pop_back();
      if (made.contains(n) || !missing.emplace(at(*n), n).second) continue;
      if (n->kind() == NodeKind::placeholder)
        throw InternalError("partition: " + n->name() + " is needed where it was not kept");
      for (const Node* input : n->all_input_nodes()) waiting.push_back(input);
    }
    for (const auto& [place, n] : missing) made.emplace(n, graph.node_copy(*n, [&](Node* input) { return made.at(input); }));
  };
  for (const Node* n : always) make(n);
  Values results;
  for (const Value& v : outputs) {
    if (v.is_node()) make(v.to_node());
    results.push_back(v.is_node() ? made.at(v.to_node()) : v);
  }
  graph.output(tuple(std::move(results)));
  graph.lint();
  return std::make_shared<GraphModule>(module_, std::move(graph));
}

// Both graphs, when it is known what the forward pass keeps: of `kept` what the backward pass takes.
Partition parts(const Joint& joint, const std::vector<bool>& kept) {
  std::set<size_t> used;
  std::vector<bool> seen(joint.nodes.size());
  std::vector<size_t> waiting;
  std::vector<const Node*> backward;
  const auto want = [&](const Node& n) {
    const size_t i = joint.at(n);
    if (kept[i]) used.insert(i);
    if (!kept[i] && !seen[i]) waiting.push_back(i);
    seen[i] = true;
  };
  for (const Value& v : joint.backward_outputs) for_each_node(v, [&](const Node* n) { want(*n); });
  while (!waiting.empty()) {
    const size_t i = waiting.back();
    waiting.pop_back();
    for (const Node* input : joint.nodes[i]->all_input_nodes()) want(*input);
  }
  Partition out;
  std::vector<const Node*> primals, given, impure;
  Values outputs = joint.forward_outputs;
  for (const size_t i : used) {
    given.push_back(joint.nodes[i]);
    outputs.emplace_back(const_cast<Node*>(joint.nodes[i]));
    out.saved.push_back(joint.nodes[i]->name());
    out.saved_bytes += static_cast<size_t>(joint.bytes(i));
  }
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    const Node* n = joint.nodes[i];
    if (n->kind() == NodeKind::placeholder)
      (is_tangent(*n) ? given : primals).push_back(n);
    else if (n->kind() != NodeKind::output && n->is_impure() && joint.in_forward[i])
      impure.push_back(n);
    // In the order of the joint graph, so that gradients are let go as the pass goes.
    if (joint.after_tangent[i] && seen[i] && !is_tangent(*n)) backward.push_back(n);
  }
  out.forward = joint.extract(primals, outputs, impure);
  out.backward = joint.extract(given, joint.backward_outputs, backward);
  return out;
}

// ---- what may be computed again ---------------------------------------------------------------------------------------

// Calls that only move or make data, and reductions that PyTorch computes again too.
bool is_cheap(const Node& n) {
  static const std::set<std::string_view> names = {
      "_to_copy",   "_unsafe_view", "amax",      "any",           "arange", "argmax", "clone", "empty",
      "empty_like", "full",         "full_like", "gather",        "index",  "max",    "mean",  "min",
      "new_zeros",  "ones",         "ones_like", "scalar_tensor", "std",    "sum",    "triu",  "lift_fresh_copy",
      "var",        "var_mean",     "zeros",     "zeros_like"};
  const Operator* op = n.op();
  if (!op) return n.kind() == NodeKind::get_attr || n.kind() == NodeKind::call_function;  // getitem, arithmetic on numbers
  if (op->has_tag(Tag::random) || n.is_impure()) return false;
  return op->has_tag(Tag::pointwise) || op->has_tag(Tag::view) || op->has_tag(Tag::may_alias) ||
         op->has_tag(Tag::reads_geometry) || names.contains(op->schema().name);
}

bool only_looks(const Node& n) {
  return !n.op() || n.op()->has_tag(Tag::view) || n.op()->has_tag(Tag::may_alias) || n.op()->has_tag(Tag::reads_geometry);
}

int64_t input_bytes(const Joint& joint, const Node& n) {
  int64_t out = 0;
  for (const Node* input : n.all_input_nodes()) out += joint.bytes(joint.at(*input));
  return out;
}

bool may_compute_again(const Joint& joint, size_t i) {
  const Node& n = *joint.nodes[i];
  if (n.kind() == NodeKind::placeholder || !is_cheap(n)) return false;
  return only_looks(n) || joint.bytes(i) * 4 >= input_bytes(joint, n);
}

// The network in whose cheapest cut the source's side is what only the forward pass computes. A node has two places, before and
// behind it: the cut goes between them where it is kept, and before both where it is computed again.
std::vector<bool> choose(const Joint& joint, const MinCutOptions& options) {
  const size_t count = joint.nodes.size();
  std::vector<double> again(count);  // what it costs to compute a value again: bytes read and written
  double all = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!only_looks(*joint.nodes[i])) again[i] = static_cast<double>(joint.bytes(i) + input_bytes(joint, *joint.nodes[i]));
    all += again[i];
  }
  // A byte that is kept counts as `unit`. Without a price all that could be computed again costs less than one byte.
  constexpr int64_t unit = int64_t{1} << 16;
  const double price = options.price ? *options.price * static_cast<double>(unit)
                       : all > 0     ? static_cast<double>(unit - 1) / all
                                     : 0;
  if (options.price && !(*options.price >= 0))
    throw UserError(fmt::format("partition: expected a price of 0 or more, found {}", *options.price));

  MinCut network(2 * count + 2);
  const size_t source = 2 * count, sink = source + 1;
  const auto before = [](size_t i) { return 2 * i; };
  const auto behind = [](size_t i) { return 2 * i + 1; };
  for (size_t i = 0; i < count; ++i) {
    const Node& n = *joint.nodes[i];
    if (n.kind() == NodeKind::output) continue;
    if (joint.after_tangent[i]) {
      network.add_edge(before(i), sink, MinCut::unbounded);
    } else {
      const Value& val = n.meta.val;
      const bool can_be_kept =
          n.kind() != NodeKind::get_attr && (val.is_tensor() || val.expr() != nullptr || n.kind() == NodeKind::placeholder);
      const int64_t size = val.is_tensor() ? joint.bytes(i) : 1;
      network.add_edge(before(i), behind(i), can_be_kept ? std::min(size, int64_t{1} << 40) * unit + 1 : MinCut::unbounded);
      const bool is_bound = (joint.in_forward[i] || n.is_impure()) && !may_compute_again(joint, i);
      if (is_bound && n.kind() != NodeKind::get_attr)
        network.add_edge(source, before(i), MinCut::unbounded);
      else if (const auto cost = std::llround(std::min(again[i] * price, 1e17)); joint.in_forward[i] && cost > 0)
        network.add_edge(source, before(i), cost);
    }
    for (const Node* input : n.all_input_nodes())
      if (const size_t k = joint.at(*input); !joint.after_tangent[k])
        network.add_edge(behind(k), before(i), MinCut::unbounded);
  }
  for (const Value& v : joint.backward_outputs)
    for_each_node(v, [&](const Node* n) {
      if (!joint.after_tangent[joint.at(*n)]) network.add_edge(behind(joint.at(*n)), sink, MinCut::unbounded);
    });
  const std::vector<bool> side = network.source_side(source, sink);
  std::vector<bool> kept(count);
  for (size_t i = 0; i < count; ++i) kept[i] = !joint.after_tangent[i] && side[before(i)] && !side[behind(i)];
  return kept;
}

}  // namespace

Partition default_partition(const GraphModule& module, size_t num_forward) {
  const Joint joint(module, num_forward);
  const auto first = std::find_if(joint.nodes.begin(), joint.nodes.end(), [&](const Node* n) {
    return joint.after_tangent[joint.at(*n)] && n->kind() != NodeKind::placeholder;
  });
  std::vector<bool> kept(joint.nodes.size());
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    const Node& n = *joint.nodes[i];
    const bool is_value = n.meta.val.is_tensor() || n.meta.val.expr() != nullptr || n.kind() == NodeKind::placeholder;
    kept[i] = !joint.after_tangent[i] && n.kind() != NodeKind::get_attr && n.kind() != NodeKind::output && is_value &&
              (joint.in_forward[i] || joint.nodes.begin() + static_cast<std::ptrdiff_t>(i) < first);
  }
  return parts(joint, kept);
}

Partition min_cut_rematerialization_partition(const GraphModule& module, size_t num_forward, const MinCutOptions& options) {
  const Joint joint(module, num_forward);
  return parts(joint, choose(joint, options));
}

}  // namespace calque
