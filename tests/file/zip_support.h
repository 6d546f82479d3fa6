// Archives for tests that Calque does not write itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque::test {

// A zip whose entries are all deflated, as `zip` or Python's zipfile makes it.
std::string deflated_archive(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace calque::test
