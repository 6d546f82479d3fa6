// Who includes what, over the whole tree: read from #include lines, without preprocessing. Headers that are made at build time
// are nodes too, under the name that #include gives them.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace calque::layering {

class IncludeGraph {
 public:
  /// Reads the C++ files of `root`: include, src, tests, bench, examples and fuzz.
  explicit IncludeGraph(const std::filesystem::path& root);

  /// All .cpp files, relative to the root.
  const std::set<std::string>& sources() const { return sources_; }

  /// The .cpp files that are compiled again when `header` changes: "calque/op/ops.h", or a path relative to the root.
  std::set<std::string> readers(const std::string& header) const;

 private:
  std::map<std::string, std::set<std::string>> includers_;
  std::set<std::string> sources_;
};

}  // namespace calque::layering
