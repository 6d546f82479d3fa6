// What the golden tests of this room share.
#pragma once

#include <string>

namespace calque {

// Golden files shorten symbols to their names, s or u and digits; this writes them out as srepr has them.
std::string with_symbols(const std::string& text);

}  // namespace calque
