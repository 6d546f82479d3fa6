// From a regular expression's text to its tree.
#pragma once

#include "text/regex_tree.h"

namespace calque {

// UserError when the expression is wrong, too long for the budget or uses what regex.h does not list.
RegexTree parse_regex(std::u32string_view expression, RegexErrors& errors);

}  // namespace calque
