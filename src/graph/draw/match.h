// Which nodes of two graphs stand for each other, in order: first those that say the same in the same module, then, between them,
// those that call the same there, then those of the same name.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/draw/outline.h"

namespace calque::draw {

struct Matched {
  static constexpr uint32_t nobody = UINT32_MAX;
  std::vector<uint32_t> partner;  // of each node of A, in order: which of B
  std::vector<uint32_t> partner_of_b;
  std::vector<bool> changed;  // of each node of A that has a partner: does it say something else, or take other values?
};
Matched match_nodes(const Outline& a, const DrawOptions& options_a, const Outline& b, const DrawOptions& options_b);

}  // namespace calque::draw
