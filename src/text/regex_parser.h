// Makes the program of a TextRegex from its expression.
#pragma once

#include "text/regex.h"

namespace calque {

struct ParsedRegex {
  TextRegex::Program program;
  std::vector<CharSet> sets;
};
ParsedRegex parse_regex(std::string_view expression, const UnicodeTable& table, ExpressionBudget& budget);

}  // namespace calque
