// Instruction: what one step of a plan does, everything about it that does not change from run to run resolved.
#pragma once

#include <memory>
#include <span>

#include "run/memory_plan.h"
#include "run/operand.h"

namespace calque::run {

// Where a step's result may lie.
struct Place {
  std::span<const uint32_t> last_uses =
      {};                   // values that no step after this one reads: what one holds alone may be written over
  uint32_t slot = no_slot;  // of the frame
};

class Instruction {
 public:
  virtual ~Instruction() = default;
  virtual Value run(const Frame& frame, const Place& place) const = 0;
  // Whether its errors name the step already: of several nodes, the one that failed.
  virtual bool names_steps() const { return false; }
  // For the memory plan: one tensor of its own, which may lie in a slot; which may be written over an operand.
  virtual bool makes_tensor() const { return false; }
  virtual bool takes_over() const { return false; }
};

// For a node that calls something. `owner` answers calls of modules. The ids and the graph must outlive the instruction.
std::unique_ptr<const Instruction> make_instruction(const Node& node, const ValueIds& ids, const GraphOwner& owner);

// "while executing ..." with the node and its line, in front of the error.
void name_step(Error& e, const Node& n);

}  // namespace calque::run
