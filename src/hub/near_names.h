// Names for messages: those most like a name that was not found. Private to hub/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque {

std::string listed(const std::vector<std::string>& names);  // "a, b and c"
// The few names nearest to `name`, nearest first; with no name, all of them.
std::string near_names(std::string_view name, std::vector<std::string> names, size_t most = 5);

}  // namespace calque
