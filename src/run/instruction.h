// Instruction: what one step of a plan does, everything about it that does not change from run to run resolved.
#pragma once

#include <memory>
#include <span>

#include "run/operand.h"

namespace calque::run {

// Values that no step after this one reads. What such a value holds alone may be written over.
using LastUses = std::span<const uint32_t>;

class Instruction {
 public:
  virtual ~Instruction() = default;
  virtual Value run(const Frame& frame, LastUses last_uses) const = 0;
  // Whether its errors name the step already: of several nodes, the one that failed.
  virtual bool names_steps() const { return false; }
};

// For a node that calls something. `owner` answers calls of modules. The ids and the graph must outlive the instruction.
std::unique_ptr<const Instruction> make_instruction(const Node& node, const ValueIds& ids, const GraphOwner& owner);

// "while executing ..." with the node and its line, in front of the error.
void name_step(Error& e, const Node& n);

}  // namespace calque::run
