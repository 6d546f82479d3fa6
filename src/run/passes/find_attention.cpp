#include "graph/passes/mutation.h"
#include "run/attention_call.h"
#include "run/passes/outline.h"
#include "run/passes/passes.h"

namespace calque::run {
namespace {

class AttentionFinding {
 public:
  explicit AttentionFinding(PassInput& input)
      : input_(input), graph_(input.module.graph()), mutations_(graph_), end_(graph_.id_bound()) {}

  bool run() {
    bool changed = false;
    for (Node* n : graph_.node_list()) {
      const std::optional<AttentionForm> form = attention_form(*n);
      if (form && fits(*form)) changed |= replace(*form);
    }
    return changed;
  }

 private:
  // Of four dimensions, float32; nothing is written between its parts.
  bool fits(const AttentionForm& form) const {
    for (const Node* n : {form.query, form.key, form.value}) {
      if (!n->meta.val.is_tensor()) return false;
      const Tensor& t = n->meta.val.to_tensor();
      if (!t.defined() || t.dim() != 4 || t.dtype() != DType::float32) return false;
    }
    if (form.mask && (!form.mask->meta.val.is_tensor() || form.mask->meta.val.to_tensor().dtype() != DType::float32))
      return false;
    for (const Node* n : form.nodes)
      if (is_written(*n) && n != form.nodes.front()) return false;
    const uint32_t end = mutations_.region(*form.nodes.front());
    for (const Node* n : form.nodes)
      for (size_t i = 0; mutations_.region(*n) != end && i < n->num_input_nodes(); ++i)
        if (is_written(*n->input_node(i))) return false;
    return true;
  }
  // What the pass made itself is read, not written.
  bool is_written(const Node& n) const { return n.id() < end_ && mutations_.is_written(n); }

  bool replace(const AttentionForm& form) {
    const std::vector<Node*> nodes(form.nodes.rbegin(), form.nodes.rend());
    outline(input_, nodes, inputs_of(nodes), "_attention");
    return true;
  }

  PassInput& input_;
  Graph& graph_;
  const Mutations mutations_;
  const size_t end_;  // of the nodes that were there at first
};

}  // namespace

bool find_attention(PassInput& input) { return AttentionFinding(input).run(); }

}  // namespace calque::run
