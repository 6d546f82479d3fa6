// Who includes what, over the whole tree: read from #include lines, without preprocessing. Headers that are made at build time
// are nodes too, under the name that #include gives them.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

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

/// What the compiler is given for the library and the program, as compile_commands.json in `build` lists it: the files of the tree
/// that each call of the compiler takes, relative to `root`. Groups of files have many, kernels a call for each instruction set.
std::vector<std::set<std::string>> compiled_groups(const std::filesystem::path& root, const std::filesystem::path& build);

}  // namespace calque::layering
