// Instruction: what one step of a plan does, everything about it that does not change from run to run resolved.
#pragma once

#include <memory>

#include "run/operand.h"

namespace calque::run {

class Instruction {
 public:
  virtual ~Instruction() = default;
  virtual Value run(const Frame& frame) const = 0;
};

// For a node that calls something. `owner` answers calls of modules. The ids and the graph must outlive the instruction.
std::unique_ptr<const Instruction> make_instruction(const Node& node, const ValueIds& ids, const GraphOwner& owner);

}  // namespace calque::run
