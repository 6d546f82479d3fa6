#include "layering.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>

#include "lexer.h"

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  const auto extension = path.extension();
  return extension == ".h" || extension == ".hpp" || extension == ".cpp" || extension == ".inc";
}

class Checker {
 public:
  Checker(fs::path root, const std::vector<std::string>& rooms) : root_(std::move(root)), rooms_(rooms) {}

  std::vector<std::string> run() {
    check_tree("include/calque", /*is_public=*/true);
    check_tree("src", /*is_public=*/false);
    std::sort(violations_.begin(), violations_.end());
    return std::move(violations_);
  }

 private:
  std::optional<std::size_t> level(const std::string& room) const {
    const auto found = std::find(rooms_.begin(), rooms_.end(), room);
    if (found == rooms_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - rooms_.begin());
  }

  // Files that lie directly in the folder belong to no room (an umbrella header): they may include everything public.
  void check_tree(const fs::path& folder, bool is_public) {
    if (!fs::exists(root_ / folder)) return;
    for (const auto& entry : fs::directory_iterator(root_ / folder)) {
      if (!entry.is_directory()) continue;
      const std::string room = entry.path().filename().string();
      if (!level(room)) {
        violations_.push_back((folder / room).string() + ":0: '" + room + "' is not in the list of rooms");
        continue;
      }
      for (const auto& file : fs::recursive_directory_iterator(entry.path())) {
        if (file.is_regular_file() && is_source(file.path())) check_file(file.path(), room, is_public);
      }
    }
  }

  void check_file(const fs::path& path, const std::string& room, bool is_public) {
    static const std::regex include_line(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"].*)re");
    std::ifstream in(path);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch match;
      if (!std::regex_match(line, match, include_line)) continue;
      const std::string reason = why_wrong(path, room, is_public, match[1].str());
      if (reason.empty()) continue;
      violations_.push_back(fs::relative(path, root_).string() + ":" + std::to_string(number) + ": " + reason);
    }
  }

  std::string why_wrong(const fs::path& path, const std::string& room, bool is_public, const std::string& included) const {
    const std::string prefix = "calque/";
    std::string inner = included;
    const bool names_public = included.starts_with(prefix);
    if (names_public) {
      inner = included.substr(prefix.size());
    } else if (included.starts_with(".")) {
      // Relative: see where it lands among the folders of this tree.
      const fs::path tree = is_public ? root_ / "include/calque" : root_ / "src";
      inner = (path.parent_path() / included).lexically_normal().lexically_relative(tree).generic_string();
      if (inner.starts_with("..")) return "'" + included + "' leaves its tree";
    }
    const auto slash = inner.find('/');
    if (slash == std::string::npos) {
      return names_public ? "'" + included + "' belongs to no room, so it may include all of them" : std::string();
    }
    const std::string target = inner.substr(0, slash);
    const auto target_level = level(target);
    if (!target_level) {
      return names_public ? "'" + included + "' is in '" + target + "', which is no room" : std::string();
    }
    if (is_public && !names_public && !included.starts_with(".")) {
      return "a public header includes the private '" + included + "'";
    }
    if (*target_level > *level(room)) return "'" + room + "' includes '" + included + "', and '" + target + "' is above it";
    return {};
  }

  fs::path root_;
  const std::vector<std::string>& rooms_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> read_rooms(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::string> rooms;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() != '#') rooms.push_back(line);
  }
  return rooms;
}

std::vector<std::string> find_violations(const fs::path& root, const std::vector<std::string>& rooms) {
  return Checker(root, rooms).run();
}

std::vector<std::string> find_twins(const fs::path& root) {
  static const std::regex opens_namespace(R"re(^namespace (\w[\w:]*) \{.*)re");
  static const std::regex defines_type(R"re(^(?:struct|class|enum class) (\w+)(?: final)?(?: : .*)? \{.*)re");
  std::map<std::string, std::string> seen;
  std::vector<std::string> twins;
  for (const char* folder : {"include/calque", "src"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      if (file.path().extension() != ".h") continue;
      std::ifstream in(file.path());
      const std::string name = fs::relative(file.path(), root).string();
      std::string line, within;
      for (std::smatch match; std::getline(in, line);) {
        if (std::regex_match(line, match, opens_namespace)) within = match[1];
        if (!std::regex_match(line, match, defines_type)) continue;
        const std::string type = within + "::" + match[1].str();
        const auto [first, added] = seen.emplace(type, name);
        if (!added) twins.push_back(type + ": " + std::min(first->second, name) + " and " + std::max(first->second, name));
      }
    }
  }
  std::sort(twins.begin(), twins.end());
  return twins;
}

std::vector<std::string> find_thread_locals(const fs::path& root) {
  // The last name before the end of the declaration or before its value.
  static const std::regex declares(R"re(^(.*\W)?(thread_local|__thread)\b(?:[^=;{]*\b(\w+)\s*(?:[=;{].*)?)?$)re");
  std::vector<std::string> found;
  for (const char* folder : {"include/calque", "src"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      if (!file.is_regular_file() || !is_source(file.path())) continue;
      std::ifstream in(file.path());
      std::string line;
      for (std::smatch match; std::getline(in, line);) {
        line = line.substr(0, line.find("//"));
        if (std::regex_match(line, match, declares))
          found.push_back(fs::relative(file.path(), root).string() + ": " + match[3].str());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> find_operator_names(const fs::path& root) {
  std::vector<std::string> found;
  for (const char* folder : {"include/calque", "src"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      if (!file.is_regular_file() || !is_source(file.path())) continue;
      const std::string name = fs::relative(file.path(), root).string();
      if (name.starts_with(folder + std::string("/op/"))) continue;
      std::ifstream in(file.path());
      const std::string text(std::istreambuf_iterator<char>(in), {});
      for (const Token& token : tokens_of(text))
        if (token.text.starts_with("\"aten::"))
          found.push_back(name + ":" + std::to_string(token.line) +
                          ": an operator by its name; say it in the stanza or in op/well_known.h");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The words of a source that may be operators' functions: what follows a dot or an arrow is a member, and std::max and
// functional::dropout are others. Includes, comments and the texts of literals do not count.
std::set<std::string> free_words(const std::string& text) {
  static const std::regex token(
      R"re(//[^\n]*|#\s*include[^\n]*|"(?:\\.|[^"\\\n])*"|\bcalque::|(\.|->|::)?\b([A-Za-z_]\w*))re");
  std::set<std::string> words;
  for (std::sregex_iterator match(text.begin(), text.end(), token), end; match != end; ++match)
    if ((*match)[2].matched && !(*match)[1].matched) words.insert((*match)[2]);
  return words;
}

// The functions that a family's header declares, one a line.
std::set<std::string> declared_functions(const fs::path& header) {
  static const std::regex name_before_arguments(R"re(\b(\w+)\()re");
  std::set<std::string> names;
  std::ifstream in(header);
  std::string line;
  for (std::smatch match; std::getline(in, line);)
    if (!line.starts_with("//") && std::regex_search(line, match, name_before_arguments)) names.insert(match[1]);
  return names;
}

}  // namespace

std::vector<std::string> find_needless_families(const fs::path& root, const fs::path& headers) {
  std::map<std::string, std::set<std::string>> names_of;  // by the path in the include
  for (const auto& header : fs::directory_iterator(headers))
    names_of["calque/op/aten/" + header.path().filename().string()] = declared_functions(header);
  static const std::regex include_line(R"re(#include "(calque/op/aten/\w+\.h)")re");
  std::vector<std::string> found;
  for (const char* folder : {"include/calque", "src", "tests", "examples", "bench", "fuzz"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      if (!file.is_regular_file() || !is_source(file.path())) continue;
      const std::string text = read_text(file);
      std::sregex_iterator include(text.begin(), text.end(), include_line);
      if (include == std::sregex_iterator()) continue;
      const std::set<std::string> words = free_words(text);
      for (; include != std::sregex_iterator(); ++include) {
        const std::set<std::string>& names = names_of[(*include)[1]];
        if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return words.contains(name); }))
          found.push_back(fs::relative(file.path(), root).string() + ": includes " + (*include)[1].str() +
                          " and calls none of it");
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace calque::layering
