#include "clones.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <unordered_map>

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

struct Token {
  int word = 0;  // an id of the text; negative between files, where every one is different
  int line = 0;
  int file = 0;
};

class Reader {
 public:
  explicit Reader(fs::path root) : root_(std::move(root)) {}

  void read_folder(const char* folder) {
    if (!fs::exists(root_ / folder)) return;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) read_file(path);
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  const std::string& file(int number) const { return files_[static_cast<size_t>(number)]; }

 private:
  void read_file(const fs::path& path) {
    std::ifstream in(path);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    files_.push_back(fs::relative(path, root_).string());
    at_ = 0;
    line_ = 1;
    while (at_ < text_.size()) read_token();
    tokens_.push_back({-static_cast<int>(files_.size()), line_, static_cast<int>(files_.size()) - 1});
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_to(size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  size_t find(std::string_view what, size_t from) const {
    const size_t found = text_.find(what, from);
    return found == std::string::npos ? text_.size() : found;
  }
  // The end of a preprocessor line and of those that continue it.
  size_t end_of_directive() const {
    size_t end = find("\n", at_);
    while (end < text_.size() && end > 0 && text_[end - 1] == '\\') end = find("\n", end + 1);
    return end;
  }

  // Behind the colon of `case a::b:`. A list of enumerators is no logic.
  size_t end_of_label() const {
    size_t end = find(":", at_);
    while (end + 1 < text_.size() && text_[end + 1] == ':') end = find(":", end + 2);
    return end + 1;
  }

  // Behind the comma of `-12,`; where it is where no number with a comma stands. A table of numbers is data.
  size_t end_of_table_entry() const {
    size_t end = at_ + (peek() == '-' ? 1 : 0);
    if (end >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[end]))) return at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.')) ++end;
    while (end < text_.size() && std::isspace(static_cast<unsigned char>(text_[end]))) ++end;
    return end < text_.size() && text_[end] == ',' ? end + 1 : at_;
  }

  void read_token() {
    const char c = peek();
    if (const size_t behind = end_of_table_entry(); behind != at_) return skip_to(behind);
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    size_t end = at_ + 1;
    if (std::isspace(static_cast<unsigned char>(c))) return skip_to(end);
    if (c == '#') return skip_to(end_of_directive());
    if (c == '/' && peek(1) == '/') return skip_to(find("\n", at_));
    if (c == '/' && peek(1) == '*') return skip_to(find("*/", at_) + 2);
    if (c == 'R' && peek(1) == '"') {
      const size_t open = find("(", at_);
      const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
      end = find(close, open) + close.size();
    } else if (c == '"' || c == '\'') {
      while (end < text_.size() && text_[end] != c && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
      ++end;
    } else if (is_word) {
      while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) ++end;
    }
    end = std::min(end, text_.size());
    if (text_.compare(at_, end - at_, "case") == 0) return skip_to(end_of_label());
    const auto word = words_.emplace(text_.substr(at_, end - at_), static_cast<int>(words_.size())).first->second;
    tokens_.push_back({word, line_, static_cast<int>(files_.size()) - 1});
    skip_to(end);
  }

  fs::path root_;
  std::vector<std::string> files_;
  std::unordered_map<std::string, int> words_;
  std::vector<Token> tokens_;
  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
};

uint64_t mixed(uint64_t hash, int word) { return hash * 1000003u + static_cast<uint64_t>(word) + 7919u; }

}  // namespace

std::vector<Clone> find_clones(const fs::path& root, int least) {
  Reader reader(root);
  reader.read_folder("include");
  reader.read_folder("src");
  const std::vector<Token>& tokens = reader.tokens();
  const auto size = static_cast<size_t>(least);

  uint64_t leaving = 1;  // what a word weighs once `size` others have followed
  for (size_t i = 0; i < size; ++i) leaving *= 1000003u;
  std::vector<uint64_t> window(tokens.size() < size ? 0 : tokens.size() - size + 1);
  uint64_t hash = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    hash = mixed(hash, tokens[i].word);
    if (i >= size) hash -= (static_cast<uint64_t>(tokens[i - size].word) + 7919u) * leaving;
    if (i + 1 >= size) window[i + 1 - size] = hash;
  }

  const auto place = [&](size_t from, size_t count) {
    return Place{reader.file(tokens[from].file), tokens[from].line, tokens[from + count - 1].line};
  };
  std::unordered_map<uint64_t, size_t> first;
  std::vector<Clone> clones;
  size_t entered = 0;  // windows before this one are known
  for (size_t i = 0; i < window.size();) {
    for (; entered + size <= i; ++entered) first.emplace(window[entered], entered);  // a run does not overlap its copy
    const auto found = first.find(window[i]);
    size_t count = 0;
    if (found != first.end())
      while (i + count < tokens.size() && found->second + count < i &&
             tokens[i + count].word == tokens[found->second + count].word)
        ++count;
    if (count < size) {
      ++i;
      continue;
    }
    clones.push_back({place(i, count), place(found->second, count), static_cast<int>(count)});
    i += count;
  }
  std::stable_sort(clones.begin(), clones.end(), [](const Clone& a, const Clone& b) { return a.tokens > b.tokens; });
  return clones;
}

}  // namespace calque::layering
