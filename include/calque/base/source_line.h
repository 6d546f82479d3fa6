// A line of source with a caret under the place, for errors that speak of a user's code.
#pragma once

#include <source_location>
#include <string>

namespace calque {

// "\n    if (y.max() > 3) {\n        ^", or nothing where the file is not at hand, has changed its length, or the line is empty.
std::string source_line(const std::source_location& where);
std::string source_line(const char* file, unsigned line, unsigned column);

}  // namespace calque
