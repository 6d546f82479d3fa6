#include <algorithm>

#include "graph/passes/mutation.h"
#include "run/operator_call.h"
#include "run/passes/outline.h"
#include "run/passes/passes.h"

namespace calque::run {
namespace {

class PointwiseFusion {
 public:
  explicit PointwiseFusion(PassInput& input)
      : input_(input),
        graph_(input.module.graph()),
        mutations_(graph_),
        chain_of_(graph_.id_bound(), none),
        epochs_(graph_.id_bound()) {}

  bool run() {
    uint32_t epoch = 0;
    for (const Node* n : graph_.nodes()) {
      if (n->kind() != NodeKind::placeholder && n->is_impure()) ++epoch;
      epochs_[n->id()] = epoch;
    }
    for (Node* n : graph_.nodes().reversed())
      if (may_be_part(*n)) place(*n);
    bool changed = false;
    for (std::vector<Node*>& chain : chains_)
      if (chain.size() > 1) changed |= replace(chain);
    return changed;
  }

 private:
  static constexpr size_t none = SIZE_MAX, most_calls = 24, most_inputs = 16;

  bool may_be_part(const Node& n) const {
    if (n.kind() != NodeKind::call_function || !n.op() || !is_pointwise_operator(*n.op()) || n.is_impure()) return false;
    if (mutations_.is_written(n) || n.num_input_nodes() == 0) return false;
    // Other steps give tensors alone, and as arguments by themselves.
    const auto plain = [](const Value& v) {
      if (v.is_node()) return true;
      bool holds_nodes = false;
      for_each_node(v, [&](const Node*) { holds_nodes = true; });
      return !holds_nodes;
    };
    return std::all_of(n.args().begin(), n.args().end(), plain) &&
           std::all_of(n.kwargs().begin(), n.kwargs().end(), [&](const auto& k) { return plain(k.second); }) &&
           gives_tensors_where_taken(n);
  }

  // A number that another node gives is no tensor: the call would convert it.
  static bool gives_tensors_where_taken(const Node& n) {
    const auto& arguments = n.op()->schema().arguments;
    const uint64_t tensors = n.op()->called().calls().arguments.tensors;
    const auto takes = [&](size_t i) { return i < arguments.size() && (tensors >> i & 1U) != 0; };
    for (size_t i = 0; i < n.args().size(); ++i)
      if (n.args()[i].is_node() && !takes(i)) return false;
    for (const auto& [key, value] : n.kwargs()) {
      const std::optional<size_t> at = n.op()->schema().find_argument(key);
      if (value.is_node() && (!at || !takes(*at))) return false;
    }
    return true;
  }

  // Into the chain of all its users, or into one of its own.
  void place(Node& n) {
    size_t chain = none;
    bool joins = !n.users().empty();
    for (const Node* user : n.users()) {
      const size_t of_user = chain_of_[user->id()];
      joins = joins && of_user != none && (chain == none || chain == of_user);
      chain = of_user;
    }
    if (!joins || !fits(n, chains_[chain])) {
      chain = chains_.size();
      chains_.emplace_back();
    }
    chain_of_[n.id()] = chain;
    chains_[chain].push_back(&n);
  }

  // Whether the node may be computed where the chain's last one stands, tile by tile with it.
  bool fits(const Node& n, const std::vector<Node*>& chain) const {
    const Node& last = *chain.front();
    if (chain.size() >= most_calls || epochs_[n.id()] != epochs_[last.id()]) return false;
    if (mutations_.region(n) != mutations_.region(last))
      for (size_t i = 0; i < n.num_input_nodes(); ++i)
        if (mutations_.is_written(*n.input_node(i))) return false;
    if (!n.meta.val.is_tensor() || !last.meta.val.is_tensor()) return true;
    const SymIntList a = n.meta.val.to_tensor().sym_sizes(), b = last.meta.val.to_tensor().sym_sizes();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymInt x, SymInt y) { return identical(x, y); });
  }

  bool replace(std::vector<Node*>& chain) {
    std::reverse(chain.begin(), chain.end());
    const std::vector<Node*> inputs = inputs_of(chain);
    if (inputs.size() > most_inputs) return false;
    outline(input_, chain, inputs, "_chain");
    return true;
  }

  PassInput& input_;
  Graph& graph_;
  const Mutations mutations_;
  std::vector<std::vector<Node*>> chains_;  // each from its last node backwards
  std::vector<size_t> chain_of_;            // by node
  std::vector<uint32_t> epochs_;            // by node: impure calls before it
};

}  // namespace

bool fuse_pointwise(PassInput& input) { return PointwiseFusion(input).run(); }

}  // namespace calque::run
