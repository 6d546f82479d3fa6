#include "calque/op/mode.h"
#include "graph/passes/node_folding.h"
#include "run/memory_plan.h"
#include "run/passes/passes.h"

namespace calque::run {
namespace {

class StateFolding : NodeFolding {
 public:
  explicit StateFolding(PassInput& input) : NodeFolding(input.module, "_folded"), input_(input), kept_(returned()) {}

  bool run() {
    const NoModesScope plain;
    const GradModeScope no_grad(false);  // calls that record gradients have the graph as it was
    for (const Node* n : graph_.nodes()) evaluate(*n);
    std::vector<Node*> ends;
    for (Node* n : graph_.nodes())
      if (is_known(*n) && n->kind() != NodeKind::get_attr && !value_of(*n).is_container() && feeds_others(*n)) {
        ends.push_back(n);
        if (value_of(*n).is_tensor()) note_sources(*n, value_of(*n).to_tensor());
      }
    for (Node* n : ends) replace(*n);
    return graph_.eliminate_dead_code() || !ends.empty();
  }

 private:
  // What the graph gives away, or what may share memory with that: the caller may write it.
  std::vector<bool> returned() const {
    std::vector<bool> out(graph_.id_bound());
    for (const Node* n : graph_.nodes().reversed()) {
      const bool hands_on = n->kind() == NodeKind::output || (out[n->id()] && may_share_memory(*n));
      for (size_t i = 0; hands_on && i < n->num_input_nodes(); ++i) out[n->input_node(i)->id()] = true;
    }
    return out;
  }

  bool may_fold(const Node& n) const override {
    if (kept_[n.id()]) return false;
    return is_steady_function(n) || (is_steady_state(n) && !input_.written.contains(n.target().text()));
  }

  static size_t size_of(const Value& v) {
    if (v.is_tensor()) return v.to_tensor().is_fake() ? 0 : v.to_tensor().nbytes();
    size_t bytes = 0;
    if (v.is_sequence())
      for (const Value& item : v.to_items()) bytes += size_of(item);
    return bytes;
  }
  // A result that is larger than what it was made from costs more to keep than to make.
  bool may_keep(const Node& n, const Value& v) const override {
    if (v.is_tensor() && v.to_tensor().is_fake()) return false;
    constexpr size_t small = 1 << 20;
    size_t bytes = 0;
    for (size_t i = 0; i < n.num_input_nodes(); ++i) bytes += size_of(value_of(*n.input_node(i)));
    return size_of(v) <= std::max(small, bytes);
  }

  void replace(Node& n) {
    if (value_of(n).is_tensor())
      replace_by_attribute(n, value_of(n).to_tensor());
    else
      replace_by_literal(n);
  }

  // Enters the state that the tensor was computed from; not for a view of it, which has what the state has at any time. The graph
  // is as it was when the values were computed.
  void note_sources(const Node& n, const Tensor& made) {
    std::vector<const Node*> pending{&n};
    std::vector<bool> seen(graph_.id_bound());
    std::vector<Tensor> sources;
    while (!pending.empty()) {
      const Node* at = pending.back();
      pending.pop_back();
      if (seen[at->id()]) continue;
      seen[at->id()] = true;
      if (at->kind() == NodeKind::get_attr) sources.push_back(value_of(*at).to_tensor());
      for (size_t i = 0; i < at->num_input_nodes(); ++i) pending.push_back(at->input_node(i));
    }
    if (sources.size() == 1 && sources[0].storage().get() == made.storage().get()) return;
    for (const Tensor& t : sources) input_.state.add(t);
    input_.state.add_made(made.nbytes());
  }

  PassInput& input_;
  std::vector<bool> kept_;
};

}  // namespace

bool fold_state(PassInput& input) { return StateFolding(input).run(); }

}  // namespace calque::run
