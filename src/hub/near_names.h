// Names for messages: those that a name which was not found may be a slip of. Private to the library and the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque {

std::string listed(const std::vector<std::string>& names, std::string_view last = "and");  // "a, b and c"
// How many letters must be put in, taken out, changed or exchanged with their neighbour.
size_t edit_distance(std::string_view a, std::string_view b);
// The names that differ from `name` in at most a quarter of its letters, nearest first, at most three. Case and the choice among
// '-', '_' and nothing do not count. Usually none: a guess that is not near helps nobody.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& names);
// "; did you mean 'a' or 'b'?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);
// "  a, b,\n  c, d": in lines of at most `width` letters.
std::string wrapped_list(const std::vector<std::string>& names, size_t width = 100);

}  // namespace calque
