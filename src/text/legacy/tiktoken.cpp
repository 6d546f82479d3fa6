// Vocabularies of tiktoken (tokenizer.model of Llama 3, tiktoken.model): a line a token, its bytes in base 64 and its rank, which is its id. What
// is made of them is the same for every class, but for its special tokens.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

#include "calque/base/error.h"
#include "text/base64.h"
#include "text/byte_alphabet.h"
#include "text/legacy/builder.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr const char* tiktoken_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr int64_t most_reserved_tokens = 1'000'000;  // between the vocabulary and the last token of added_tokens_decoder

// Nothing when the line is not a token and its rank. The token is in the byte alphabet.
std::optional<std::pair<std::string, int64_t>> tiktoken_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  const std::optional<std::string> bytes = decode_base64(line.substr(0, space));
  uint32_t rank = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + space + 1, end, rank);
  if (!bytes || error != std::errc() || stop != end) return std::nullopt;  // Whisper's last token has no bytes
  std::string token;
  for (const char c : *bytes) token += byte_characters()[static_cast<unsigned char>(c)];
  return std::pair(std::move(token), static_cast<int64_t>(rank));
}

// By its name, or by its first line: a SentencePiece model begins with a line that is empty.
std::optional<std::filesystem::path> tiktoken_file(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "tokenizer.model", named = folder / "tiktoken.model";
  if (std::filesystem::exists(model)) {
    std::ifstream in(model, std::ios::binary);
    char first[4096];
    in.read(first, sizeof first);
    std::string_view line(first, static_cast<size_t>(in.gcount()));
    line = line.substr(0, line.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return tiktoken_line(line) ? std::optional(model) : std::nullopt;
  }
  return std::filesystem::exists(named) ? std::optional(named) : std::nullopt;
}

LegacyVocabulary read_tiktoken(const std::filesystem::path& path) {
  LegacyVocabulary out;
  for_lines(read_utf8_file(path), [&](std::string_view line, size_t number) {
    if (line.empty()) return;
    const auto token = tiktoken_line(line);
    if (!token)
      throw UserError(ErrorKind::bad_file, path.string() + ": line " + std::to_string(number) + " is \"" + excerpt(line) +
                                               "\"; expected a token in base 64, a space and its rank");
    out.add(token->first, token->second);
  });
  return out;
}

// tiktoken has no merges: a pair of tokens is merged when the two together are one. Of the pairs that make the same token, those of lower
// ranks come first.
LegacyMerges tiktoken_merges(const LegacyVocabulary& vocabulary, const std::string& name) {
  LegacyMerges merges = generate_merges(vocabulary, {}, name);
  const auto ranks = [&](const auto& merge) {
    return std::pair(*vocabulary.find(merge.first), *vocabulary.find(merge.second));
  };
  for (auto begin = merges.begin(); begin != merges.end();) {
    const std::string made = begin->first + begin->second;
    const auto end = std::find_if(begin, merges.end(), [&](const auto& m) { return m.first + m.second != made; });
    std::stable_sort(begin, end, [&](const auto& a, const auto& b) { return ranks(a) < ranks(b); });
    begin = end;
  }
  return merges;
}

}  // namespace

bool LegacyBuilder::use_tiktoken() {
  const auto path = tiktoken_file(settings.folder());
  if (!path) return false;
  document.vocabulary = read_tiktoken(*path);
  document.model =
      bpe_model(document.vocabulary, tiktoken_merges(document.vocabulary, path->string()), {.ignore_merges = true});
  document.pre_tokenizer =
      pre_tokenizer_sequence({split_expression(tiktoken_words, "Isolated", false), byte_level(false, true, false)});
  document.post_processor = byte_level(true, false);
  document.decoder = byte_level(true);
  // Special tokens have the ids behind the vocabulary, those without a name too.
  const auto special = [this](const std::string& content) {
    document.add({.content = content, .special = true, .normalized = false});
  };
  const auto size = static_cast<int64_t>(document.vocabulary.distinct());
  const int64_t last = settings.added.empty() ? -1 : settings.added.rbegin()->first;
  if (last - size > most_reserved_tokens)
    fail("added_tokens_decoder has a token " + std::to_string(last) + ", and the vocabulary has " + std::to_string(size));
  for (int64_t id = size; id <= last; ++id) {
    const auto named = settings.added.find(id);
    special(named == settings.added.end() ? "<|reserved_token_" + std::to_string(id) + "|>" : named->second.content);
  }
  if (settings.extra)
    for (const GivenToken& token : *settings.extra) special(token.token.content);
  return true;
}

}  // namespace calque
