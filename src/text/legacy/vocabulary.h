// The tokens of a model and their ids, as vocabulary files give them: vocab.txt, vocab.json, merges.txt, the pieces of a
// SentencePiece model. What is read is what the tokenizers library reads from the same file; a wrong file is a UserError (bad_file)
// that names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/legacy/sentencepiece.h"

namespace calque {

// Hashes strings of all kinds alike, for look-ups without a copy.
struct LegacyTextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

class LegacyVocabulary {
 public:
  struct Entry {
    std::string token;
    int64_t id;
    double score;
  };

  // A token that comes again has the later id.
  void add(std::string_view token, int64_t id, double score = 0);
  void push(std::string_view token, double score = 0) { add(token, static_cast<int64_t>(entries_.size()), score); }

  std::optional<int64_t> find(std::string_view token) const;
  const std::vector<Entry>& entries() const { return entries_; }
  size_t distinct() const { return ids_.size(); }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, int64_t, LegacyTextHash, std::equal_to<>> ids_;
};

using LegacyMerges = std::vector<std::pair<std::string, std::string>>;

// Calls fn(line, number) for each; what ends a line (\n or \r\n) is not part of it.
template <class F>
void for_lines(std::string_view text, F&& fn) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    fn(line, number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string read_utf8_file(const std::filesystem::path& path);
LegacyVocabulary read_vocab_txt(const std::filesystem::path& path);
// With a language: of the languages in the file, that one's.
LegacyVocabulary read_vocab_json(const std::filesystem::path& path, const std::string& language = {});
LegacyMerges read_merges_txt(const std::filesystem::path& path);

// The merges that make the pieces of a vocabulary out of its other pieces, by the id of what they make, then by the length of
// their left half. Tokens of `skip` take no part. `name` is the file's, for messages.
LegacyMerges generate_merges(const LegacyVocabulary& vocabulary, const std::vector<std::string>& skip,
                             const std::string& name);

}  // namespace calque
