#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

#include "layering.h"

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Reads one file from the beginning to the end and keeps the braces that are open.
class SwitchReader {
 public:
  SwitchReader(std::string name, std::vector<DefaultedSwitch>& found) : name_(std::move(name)), found_(found) {}

  void read(const std::string& text) {
    if (text.find("default:") == std::string::npos) return;  // which is quick
    // Comments and literals are matched first, so that nothing in them counts.
    static const std::regex token(
        R"re(//[^\n]*|/\*[^]*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|\n|[{}]|\b(switch)\s*\(|\b(default):)re"
        R"re(|\bcase\s+((?:\w+::)*\w+)::\w+\s*:)re");
    for (std::sregex_iterator match(text.begin(), text.end(), token), end; match != end; ++match) {
      const std::string word = match->str();
      if (word == "{") open();
      if (word == "}") close();
      if ((*match)[1].matched) switch_begins_ = true;
      if (Brace* inner = innermost_switch()) {
        if ((*match)[2].matched) inner->default_line = line_;
        if ((*match)[3].matched) inner->enumeration = (*match)[3];
      }
      line_ += std::count(word.begin(), word.end(), '\n');
    }
  }

 private:
  struct Brace {
    bool of_switch = false;
    std::ptrdiff_t default_line = 0;
    std::string enumeration;
  };

  void open() {
    braces_.push_back({switch_begins_, 0, {}});
    switch_begins_ = false;
  }
  void close() {
    if (braces_.empty()) return;
    const Brace last = std::move(braces_.back());
    braces_.pop_back();
    if (last.default_line != 0 && !last.enumeration.empty())
      found_.push_back({name_ + ":" + std::to_string(last.default_line), last.enumeration});
  }
  Brace* innermost_switch() {
    const auto found = std::find_if(braces_.rbegin(), braces_.rend(), [](const Brace& b) { return b.of_switch; });
    return found == braces_.rend() ? nullptr : &*found;
  }

  std::string name_;
  std::vector<DefaultedSwitch>& found_;
  std::vector<Brace> braces_;
  std::ptrdiff_t line_ = 1;
  bool switch_begins_ = false;  // its brace is still to come
};

}  // namespace

std::vector<DefaultedSwitch> find_defaulted_switches(const fs::path& root) {
  std::vector<DefaultedSwitch> found;
  for (const char* folder : {"include/calque", "src", "tests", "examples", "bench", "fuzz"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& file : fs::recursive_directory_iterator(root / folder))
      if (file.path().extension() == ".h" || file.path().extension() == ".cpp")
        SwitchReader(fs::relative(file.path(), root).string(), found).read(text_of(file.path()));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  return found;
}

}  // namespace calque::layering
