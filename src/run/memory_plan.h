// The memory plan: which results of a graph's steps share a place in the frame (a slot), over symbolic sizes. Results of one slot have
// the same size in bytes, whatever the symbols are, and are never needed at one time. So a frame's memory is known before a run:
// the sum of its slots. Whether a place is really free is asked again when it is used, by its count of references.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/graph/graph.h"

namespace calque::run {

constexpr uint32_t no_slot = UINT32_MAX;

// What is to be known of a step to plan its memory.
struct PlannedStep {
  const Node* node;
  bool makes_tensor;  // its result is one tensor that shares no memory, and may lie in a slot
  bool takes_over;    // the result may be written over an operand that is used for the last time
};

struct MemoryPlan {
  std::vector<uint32_t> slot_of;  // by step; no_slot for what is made anew
  std::vector<SymInt> bytes;      // by slot
};

MemoryPlan plan_memory(const std::vector<PlannedStep>& steps, const Graph& graph);

// Whether what a node gives may share memory with what it takes.
bool may_share_memory(const Node& n);

}  // namespace calque::run
