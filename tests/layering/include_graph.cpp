#include "include_graph.h"

#include <fstream>
#include <regex>

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

// The file of the tree that an include means, relative to the root; the include itself where there is no such file.
std::string resolved(const fs::path& root, const fs::path& from, const std::string& included) {
  for (const fs::path& folder :
       {fs::relative(from.parent_path(), root), fs::path("include"), fs::path("src"), fs::path("tests")}) {
    const fs::path path = (folder / included).lexically_normal();
    if (fs::is_regular_file(root / path)) return path.generic_string();
  }
  return included;
}

}  // namespace

IncludeGraph::IncludeGraph(const fs::path& root) {
  static const std::regex include_line(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"].*)re");
  for (const char* folder : {"include", "src", "tests", "bench", "examples", "fuzz"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = file.path().extension();
      if (!file.is_regular_file() || (extension != ".h" && extension != ".cpp")) continue;
      const std::string name = fs::relative(file.path(), root).generic_string();
      if (extension == ".cpp") sources_.insert(name);
      std::ifstream in(file.path());
      std::string line;
      for (std::smatch match; std::getline(in, line);)
        if (line.find("include") != std::string::npos && std::regex_match(line, match, include_line))
          includers_[resolved(root, file.path(), match[1])].insert(name);
    }
  }
}

std::set<std::string> IncludeGraph::readers(const std::string& header) const {
  std::set<std::string> reached = {header}, found;
  std::vector<std::string> open = {header};
  while (!open.empty()) {
    const auto includers = includers_.find(open.back());
    open.pop_back();
    if (includers == includers_.end()) continue;
    for (const std::string& file : includers->second) {
      if (!reached.insert(file).second) continue;
      open.push_back(file);
      if (sources_.contains(file)) found.insert(file);
    }
  }
  return found;
}

std::vector<std::set<std::string>> compiled_groups(const fs::path& root, const fs::path& build) {
  static const std::regex file_line(R"re(\s*"file": "([^"]+)",?)re"), member_line(R"re(#include "([^"]+\.cpp)")re");
  std::vector<std::set<std::string>> found;
  std::ifstream commands(build / "compile_commands.json");
  std::string line;
  for (std::smatch match; std::getline(commands, line);) {
    if (!std::regex_match(line, match, file_line)) continue;
    const fs::path file = match[1].str();
    const std::string name = fs::relative(file, root).generic_string();
    const std::string made = fs::relative(file, build / "generated/src").generic_string();
    if (name.starts_with("src/")) {
      found.push_back({name});
    } else if (!made.starts_with("../") && !made.starts_with("tests_")) {
      std::set<std::string>& group = found.emplace_back();
      std::ifstream in(file);
      while (std::getline(in, line))
        if (std::regex_match(line, match, member_line)) group.insert("src/" + match[1].str());
    }
  }
  return found;
}

}  // namespace calque::layering
