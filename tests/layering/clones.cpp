#include "clones.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "lexer.h"

namespace calque::layering {
namespace {

namespace fs = std::filesystem;

struct Word {
  int id = 0;  // of the text; negative between files, where every one is different
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

  const std::vector<Word>& words() const { return words_; }
  const std::string& file(int number) const { return files_[static_cast<size_t>(number)]; }

 private:
  void read_file(const fs::path& path) {
    std::ifstream in(path);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    files_.push_back(fs::relative(path, root_).string());
    const int file = static_cast<int>(files_.size()) - 1;
    const std::vector<Token> tokens = tokens_of(text);
    for (size_t i = 0; i < tokens.size();) {
      if (const size_t behind = behind_data(tokens, i); behind != i) {
        i = behind;
        continue;
      }
      const auto id = ids_.emplace(tokens[i].text, static_cast<int>(ids_.size())).first->second;
      words_.push_back({id, tokens[i].line, file});
      ++i;
    }
    words_.push_back({-file - 1, tokens.empty() ? 1 : tokens.back().line, file});
  }

  // Behind `case a::b:`, for a list of enumerators is no logic, and behind `-12,`, for a table of numbers is data; `at` elsewhere.
  static size_t behind_data(const std::vector<Token>& tokens, size_t at) {
    const auto is = [&](size_t i, std::string_view text) { return i < tokens.size() && tokens[i].text == text; };
    if (is(at, "case")) {
      size_t end = at;
      while (end < tokens.size() && !is(end, ":")) end += is(end + 1, ":") && is(end + 2, ":") ? 3 : 1;
      return std::min(end + 1, tokens.size());
    }
    const size_t number = is(at, "-") ? at + 1 : at;
    return number < tokens.size() && tokens[number].is_number() && is(number + 1, ",") ? number + 2 : at;
  }

  fs::path root_;
  std::vector<std::string> files_;
  std::unordered_map<std::string, int> ids_;
  std::vector<Word> words_;
};

uint64_t mixed(uint64_t hash, int word) { return hash * 1000003u + static_cast<uint64_t>(word) + 7919u; }

}  // namespace

std::vector<Clone> find_clones(const fs::path& root, int least) {
  Reader reader(root);
  reader.read_folder("include");
  reader.read_folder("src");
  const std::vector<Word>& words = reader.words();
  const auto size = static_cast<size_t>(least);

  uint64_t leaving = 1;  // what a word weighs once `size` others have followed
  for (size_t i = 0; i < size; ++i) leaving *= 1000003u;
  std::vector<uint64_t> window(words.size() < size ? 0 : words.size() - size + 1);
  uint64_t hash = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    hash = mixed(hash, words[i].id);
    if (i >= size) hash -= (static_cast<uint64_t>(words[i - size].id) + 7919u) * leaving;
    if (i + 1 >= size) window[i + 1 - size] = hash;
  }

  const auto place = [&](size_t from, size_t count) {
    return Place{reader.file(words[from].file), words[from].line, words[from + count - 1].line};
  };
  std::unordered_map<uint64_t, size_t> first;
  std::vector<Clone> clones;
  size_t entered = 0;  // windows before this one are known
  for (size_t i = 0; i < window.size();) {
    for (; entered + size <= i; ++entered) first.emplace(window[entered], entered);  // a run does not overlap its copy
    const auto found = first.find(window[i]);
    size_t count = 0;
    if (found != first.end())
      while (i + count < words.size() && found->second + count < i && words[i + count].id == words[found->second + count].id)
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
