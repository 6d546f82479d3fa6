// One character as UTF-8.
#pragma once

#include <string>

namespace calque {

void append_utf8(std::string& out, char32_t c);

}  // namespace calque
