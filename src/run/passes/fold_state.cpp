#include <unordered_map>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/op/mode.h"
#include "graph/passes/mutation.h"
#include "run/memory_plan.h"
#include "run/passes/passes.h"

namespace calque::run {
namespace {

class StateFolding {
 public:
  explicit StateFolding(PassInput& input)
      : input_(input),
        graph_(input.module.graph()),
        mutations_(graph_),
        values_(graph_.id_bound()),
        known_(graph_.id_bound()) {}

  bool run() {
    const NoModesScope plain;
    const GradModeScope no_grad(false);  // calls that record gradients have the graph as it was
    const std::vector<bool> kept = returned();
    for (const Node* n : graph_.nodes())
      if (!kept[n->id()]) evaluate(*n);
    std::vector<Node*> ends;
    for (Node* n : graph_.nodes())
      if (known_[n->id()] && n->kind() != NodeKind::get_attr && !values_[n->id()].is_container() && feeds_others(*n)) {
        ends.push_back(n);
        if (values_[n->id()].is_tensor()) note_sources(*n, values_[n->id()].to_tensor());
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

  bool may_fold(const Node& n) const {
    if (n.kind() == NodeKind::get_attr)
      return input_.module.find_tensor(n.target().text()) && !input_.written.contains(n.target().text()) &&
             !mutations_.is_written(n);
    if (n.kind() != NodeKind::call_function || n.target().is_text() || n.is_impure() || mutations_.is_written(n))
      return false;
    return !n.op() || !n.op()->has_tag(Tag::data_dependent);
  }

  void evaluate(const Node& n) {
    if (!may_fold(n)) return;
    size_t bytes = 0;
    for (size_t i = 0; i < n.num_input_nodes(); ++i) {
      if (!known_[n.input_node(i)->id()]) return;
      bytes += size_of(values_[n.input_node(i)->id()]);
    }
    const NodeFn value_of = [&](Node* input) { return values_[input->id()]; };
    try {
      Value value = run_node(n, map_nodes(n.args(), value_of), map_nodes(n.kwargs(), value_of), &input_.module.as_owner());
      if (!may_keep(value, bytes)) return;
      values_[n.id()] = std::move(value);
      known_[n.id()] = true;
    } catch (const UserError&) {
      // It would fail when the graph runs; then it says so itself.
    }
  }

  static size_t size_of(const Value& v) {
    if (v.is_tensor()) return v.to_tensor().is_fake() ? 0 : v.to_tensor().nbytes();
    size_t bytes = 0;
    if (v.is_sequence())
      for (const Value& item : v.to_items()) bytes += size_of(item);
    return bytes;
  }
  // A result that is larger than what it was made from costs more to keep than to make.
  static bool may_keep(const Value& v, size_t input_bytes) {
    constexpr size_t small = 1 << 20;
    if (v.is_tensor() && v.to_tensor().is_fake()) return false;
    return size_of(v) <= std::max(small, input_bytes);
  }

  bool feeds_others(const Node& n) const {
    for (const Node* user : n.users())
      if (!known_[user->id()]) return true;
    return false;
  }

  void replace(Node& n) {
    const Value& value = values_[n.id()];
    if (!value.is_tensor()) {
      const NodeFn literal = [&](Node* x) { return x == &n ? value : Value(x); };
      for (Node* user : n.users().list())
        user->set_args_kwargs(map_nodes(user->args(), literal), map_nodes(user->kwargs(), literal));
      return;
    }
    std::string path;
    do path = "_folded" + std::to_string(next_++);
    while (input_.module.find_tensor(path) || input_.module.find_submodule(path));
    input_.module.set_attribute(path, Attribute(value.to_tensor()));
    const auto scope = graph_.inserting_before(&n);
    Node* constant = graph_.get_attr(path);
    constant->meta = n.meta;
    n.replace_all_uses_with(constant);
  }

  // Enters the state that the tensor was computed from; not for a view of it, which has what the state has at any time. The graph
  // is as it was when the values were computed.
  void note_sources(const Node& n, const Tensor& made) {
    std::vector<const Node*> pending{&n};
    std::vector<bool> seen(values_.size());
    std::vector<Tensor> sources;
    while (!pending.empty()) {
      const Node* at = pending.back();
      pending.pop_back();
      if (seen[at->id()]) continue;
      seen[at->id()] = true;
      if (at->kind() == NodeKind::get_attr) sources.push_back(values_[at->id()].to_tensor());
      for (size_t i = 0; i < at->num_input_nodes(); ++i) pending.push_back(at->input_node(i));
    }
    if (sources.size() == 1 && sources[0].storage().get() == made.storage().get()) return;
    for (const Tensor& t : sources) input_.state.add(t);
    input_.state.add_made(made.nbytes());
  }

  PassInput& input_;
  Graph& graph_;
  Mutations mutations_;
  Values values_;
  std::vector<bool> known_;
  size_t next_ = 0;
};

}  // namespace

bool fold_state(PassInput& input) { return StateFolding(input).run(); }

}  // namespace calque::run
