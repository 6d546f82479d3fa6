// The parts of a captured graph between questions about data. A part takes values of earlier parts by name and gives those that later
// ones need; its last output is the number asked for, or its outputs are the function's.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compile/capture.h"

namespace calque::compile_detail {

struct Part {
  std::shared_ptr<GraphModule> module;
  std::vector<std::string> takes;  // in the order of its placeholders
  std::vector<std::string> gives;  // its first outputs
  bool is_pure = true;             // it may run twice: no writes, no random numbers
};

// The part behind the last answered question of a capture. `gives` are of those that the part computes; `gives_all` adds every value.
Part last_part(const Captured& captured, const std::set<std::string>& gives, bool gives_all);
// What the part behind the last answered question needs of what came before it.
std::vector<std::string> needs_of_last_part(const Captured& captured);

}  // namespace calque::compile_detail
