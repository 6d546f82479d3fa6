// Finds code that stands twice: runs of equal tokens. Comments, blank lines, layout, preprocessor lines and the labels
// of a switch do not count; names and numbers do, so a table whose rows look alike is no clone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace calque::layering {

struct Place {
  std::string file;  // relative to the root
  int first = 0, last = 0;
};

struct Clone {
  Place here, earlier;
  int tokens = 0;
};

/// The maximal runs of at least `least` tokens under `root`/include and `root`/src that stand earlier as well, the longest first.
std::vector<Clone> find_clones(const std::filesystem::path& root, int least);

}  // namespace calque::layering
