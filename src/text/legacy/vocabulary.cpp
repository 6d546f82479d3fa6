#include "text/legacy/vocabulary.h"

#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {
namespace {

// The bytes that generate_merges may compare, and so the most that its merges may take: ten times what the largest vocabularies need.
constexpr size_t most_merge_work = 200'000'000;

std::string_view without_trailing_space(std::string_view text) {
  const UnicodeTable& table = UnicodeTable::instance();
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && is_utf8_continuation(text[at])) --at;
    if (!table.is_space(decode_utf8(text.data() + at).value)) break;
    text = text.substr(0, at);
  }
  return text;
}

}  // namespace

void LegacyVocabulary::add(std::string_view token, int64_t id, double score) {
  entries_.push_back({std::string(token), id, score});
  ids_.insert_or_assign(entries_.back().token, id);
}

std::optional<int64_t> LegacyVocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string read_utf8_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path.string());
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (!is_valid_utf8(text)) throw UserError(ErrorKind::bad_file, path.string() + ": not UTF-8 text");
  if (text.starts_with("version https://git-lfs"))
    throw UserError(ErrorKind::bad_file, path.string() +
                                             " is a Git LFS pointer, not the vocabulary itself: run `git lfs install` and "
                                             "`git lfs pull` in its folder");
  return text;
}

LegacyVocabulary read_vocab_txt(const std::filesystem::path& path) {
  LegacyVocabulary out;
  for_lines(read_utf8_file(path), [&](std::string_view line, size_t) { out.push(without_trailing_space(line)); });
  if (out.entries().empty()) throw UserError(ErrorKind::bad_file, path.string() + ": no tokens; expected one a line");
  return out;
}

LegacyVocabulary read_vocab_json(const std::filesystem::path& path, const std::string& language) {
  const std::string text = read_utf8_file(path);
  const JsonDocument document(text, path.string());
  return document.read([&](const Json& root) {
    LegacyVocabulary out;
    for (const JsonMember& member : (language.empty() ? root : root.at(language)).members()) {
      const int64_t id = member.value.to_int();
      if (id < 0 || id > UINT32_MAX)
        member.value.fail("the id of \"" + excerpt(member.key) + "\" is " + std::to_string(id) +
                          "; expected 0 to 4294967295");
      out.add(member.key, id);
    }
    return out;
  });
}

LegacyMerges read_merges_txt(const std::filesystem::path& path) {
  LegacyMerges out;
  for_lines(read_utf8_file(path), [&](std::string_view line, size_t number) {
    if (line.starts_with("#version")) return;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw UserError(ErrorKind::bad_file, path.string() + ": line " + std::to_string(number) + " is \"" + excerpt(line) +
                                               "\"; expected a merge, two tokens with a space between them");
    out.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  return out;
}

LegacyMerges generate_merges(const LegacyVocabulary& vocabulary, const std::vector<std::string>& skip,
                             const std::string& name) {
  const std::unordered_set<std::string_view> skipped(skip.begin(), skip.end());
  std::vector<const LegacyVocabulary::Entry*> by_id;
  by_id.reserve(vocabulary.entries().size());
  size_t work = 0;
  for (const LegacyVocabulary::Entry& entry : vocabulary.entries()) {
    by_id.push_back(&entry);
    // Each place to split at compares all bytes, and may become a merge of them.
    work += std::min(entry.token.size(), most_merge_work) * entry.token.size();
    if (work > most_merge_work || entry.token.size() > most_merge_work)
      throw UserError(ErrorKind::bad_file, name +
                                               ": the pieces are too long to find out their merges, the longest so far of " +
                                               std::to_string(entry.token.size()) + " bytes");
  }
  std::stable_sort(by_id.begin(), by_id.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  LegacyMerges out;
  for (const LegacyVocabulary::Entry* entry : by_id) {
    const std::string_view token = entry->token;
    if (skipped.contains(token)) continue;
    for (size_t at = 1; at < token.size(); ++at) {
      if (is_utf8_continuation(token[at])) continue;
      const std::string_view left = token.substr(0, at), right = token.substr(at);
      if (!vocabulary.find(left) || !vocabulary.find(right)) continue;
      if (skipped.contains(left) || skipped.contains(right)) continue;
      out.emplace_back(left, right);
    }
  }
  return out;
}

}  // namespace calque
