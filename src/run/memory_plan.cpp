#include "run/memory_plan.h"

#include <algorithm>

#include "calque/op/tensor.h"

namespace calque::run {
namespace {

constexpr size_t never = SIZE_MAX;  // what the graph gives away is needed for good

class MemoryPlanner {
 public:
  MemoryPlanner(const std::vector<PlannedStep>& steps, const Graph& graph)
      : steps_(steps), index_(graph.id_bound(), never), end_(graph.id_bound(), 0) {
    for (size_t i = 0; i < steps.size(); ++i) index_[steps[i].node->id()] = i;
    for (const Node* n : graph.nodes().reversed()) find_end(*n);
  }

  MemoryPlan run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      plan_.slot_of.push_back(no_slot);
      const SymInt* bytes = i < steps_.size() ? bytes_of(i) : nullptr;
      if (!bytes) continue;
      uint32_t slot = steps_[i].takes_over ? taken_over(i, *bytes) : no_slot;
      if (slot == no_slot) slot = free_slot(i, *bytes);
      if (slot == no_slot) {
        slot = static_cast<uint32_t>(plan_.bytes.size());
        plan_.bytes.push_back(*bytes);
        busy_until_.push_back(0);
      }
      plan_.slot_of[i] = slot;
      busy_until_[slot] = end_[steps_[i].node->id()];
    }
    return std::move(plan_);
  }

 private:
  // The last step that reads the node, or what may share memory with it. Users come later and are done already.
  void find_end(const Node& n) {
    const size_t own = index_[n.id()];
    size_t end = own == never ? 0 : own;
    for (const Node* user : n.users()) {
      if (user->kind() == NodeKind::output) {
        end = never;
        break;
      }
      const size_t at = index_[user->id()];
      const bool hands_on = at == never || (!steps_[at].makes_tensor && may_share_memory(*user));
      end = std::max(end, hands_on ? end_[user->id()] : at);
      if (at != never) end = std::max(end, at);
    }
    end_[n.id()] = end;
  }

  const SymInt* bytes_of(size_t i) {
    const Node& n = *steps_[i].node;
    if (!steps_[i].makes_tensor || end_[n.id()] == never || !n.meta.val.is_tensor()) return nullptr;
    const Tensor& t = n.meta.val.to_tensor();
    if (!t.defined()) return nullptr;
    bytes_ = t.sym_numel() * SymInt(static_cast<int64_t>(item_size(t.dtype())));
    return &bytes_;
  }

  // The slot of an operand that ends here and nothing else shares.
  uint32_t taken_over(size_t i, SymInt bytes) const {
    for (const Node* input : steps_[i].node->all_input_nodes()) {
      const size_t at = index_[input->id()];
      if (at == never || end_[input->id()] != i) continue;
      const uint32_t slot = plan_.slot_of[at];
      if (slot != no_slot && identical(plan_.bytes[slot], bytes) && busy_until_[slot] == i) return slot;
    }
    return no_slot;
  }

  uint32_t free_slot(size_t i, SymInt bytes) const {
    for (size_t s = 0; s < plan_.bytes.size(); ++s)
      if (busy_until_[s] < i && identical(plan_.bytes[s], bytes)) return static_cast<uint32_t>(s);
    return no_slot;
  }

  const std::vector<PlannedStep>& steps_;
  std::vector<size_t> index_;       // by node: its step
  std::vector<size_t> end_;         // by node: the last step that needs its memory
  std::vector<size_t> busy_until_;  // by slot
  MemoryPlan plan_;
  SymInt bytes_;
};

}  // namespace

MemoryPlan plan_memory(const std::vector<PlannedStep>& steps, const Graph& graph) {
  return MemoryPlanner(steps, graph).run();
}

bool may_share_memory(const Node& n) {
  const Operator* op = n.op();
  if (!op) return true;
  if (op->has_tag(Tag::view) || op->has_tag(Tag::may_alias) || op->is_composite()) return true;
  for (const SchemaArgument& r : op->schema().returns)
    if (!r.alias.empty()) return true;
  return false;
}

}  // namespace calque::run
