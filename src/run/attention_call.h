// AttentionCall: softmax(scale * q @ k^T + mask) @ v that was written out, as one step over blocks of keys that never holds the scores.
// The steps are the graph of a submodule (pass find_attention); where a call does not fit (other dtypes, gradients, a row whose every key
// is masked, modes) they run as they are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "run/instruction.h"

namespace calque::run {

// The parts of an attention that ends in a product.
struct AttentionForm {
  const Node *query = nullptr, *key = nullptr, *value = nullptr;
  const Node* mask = nullptr;  // null for none
  double scale = 1;
  std::vector<Node*> nodes;  // what it is made of, the last first
};
// None where the node is no such product, or where one of the results on the way is read elsewhere.
std::optional<AttentionForm> attention_form(Node& last);

class AttentionCall final : public Instruction {
 public:
  // Null where the node calls no module with such a graph. `plain` calls the module.
  static std::unique_ptr<const AttentionCall> make(const Node& call, const ValueIds& ids, const GraphOwner& owner,
                                                   std::unique_ptr<const Instruction> plain);
  Value run(const Frame& frame, const Place& place) const override;
  bool names_steps() const override { return true; }
  bool makes_tensor() const override { return true; }

 private:
  AttentionCall() = default;
  Tensor attend(const Frame& frame, const Place& place) const;  // undefined where the call does not fit

  std::optional<Operand> query_, key_, value_, mask_;
  double scale_ = 1;
  std::unique_ptr<const Instruction> plain_;
};

}  // namespace calque::run
