// From a regular expression's tree to its program.
#pragma once

#include "text/regex_tree.h"

namespace calque {

struct CompiledRegex {
  TextRegex::Program program;
  std::vector<CharSet> sets;
  uint32_t slots = 0;  // places that the program remembers
};

// UserError when the program would be too long for the budget.
CompiledRegex compile_regex(RegexTree tree, RegexErrors& errors);

}  // namespace calque
