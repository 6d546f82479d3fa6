#include "text/legacy/document.h"

#include <algorithm>

#include "calque/file/json.h"

namespace calque {
namespace {

void optional_member(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  json.key(name);
  text ? json.value(*text) : json.null();
}

void write_template(JsonWriter& json, std::string_view name, const LegacyTemplate& pieces) {
  json.key(name);
  json.begin_array();
  for (const LegacyTemplatePiece& piece : pieces) {
    const bool sequence = piece.text == "$A" || piece.text == "$B";
    json.begin_object();
    json.key(sequence ? "Sequence" : "SpecialToken");
    json.begin_object();
    json.member("id", sequence ? piece.text.substr(1) : piece.text);
    json.member("type_id", piece.type);
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

}  // namespace

bool LegacyToken::operator==(const LegacyToken& other) const {
  return content == other.content && single_word == other.single_word && lstrip == other.lstrip && rstrip == other.rstrip &&
         special == other.special && is_normalized() == other.is_normalized();
}

const LegacyToken* TokenizerDocument::added(std::string_view content) const {
  const auto found = added_ids_.find(content);
  return found == added_ids_.end() ? nullptr : &added_.at(found->second);
}

bool TokenizerDocument::is_added(const LegacyToken& token) const {
  const LegacyToken* found = added(token.content);
  return found != nullptr && *found == token;
}

std::optional<int64_t> TokenizerDocument::find(std::string_view token) const {
  const auto found = added_ids_.find(token);
  return found == added_ids_.end() ? vocabulary.find(token) : std::optional(found->second);
}

std::optional<std::string> TokenizerDocument::token_of(int64_t id) const {
  if (const auto found = added_.find(id); found != added_.end()) return found->second.content;
  for (const LegacyVocabulary::Entry& entry : vocabulary.entries())
    if (entry.id == id) return entry.token;
  return std::nullopt;
}

int64_t TokenizerDocument::next_id() const {
  const auto size = static_cast<int64_t>(scored ? vocabulary.entries().size() : vocabulary.distinct());
  return added_.empty() ? size : std::max(size, added_.rbegin()->first + 1);
}

void TokenizerDocument::add(const LegacyToken& token) {
  if (token.content.empty() || is_added(token)) return;
  const int64_t id = find(token.content).value_or(next_id());
  added_.insert_or_assign(id, token);
  added_ids_.insert_or_assign(token.content, id);
}

std::string TokenizerDocument::text() const {
  JsonWriter json;
  json.begin_object();
  json.member("version", "1.0");
  json.key("truncation"), json.null();
  json.key("padding"), json.null();
  json.key("added_tokens");
  json.begin_array();
  for (const auto& [id, token] : added_) {
    json.begin_object();
    json.member("id", id);
    json.member("content", token.content);
    json.member("single_word", token.single_word);
    json.member("lstrip", token.lstrip);
    json.member("rstrip", token.rstrip);
    json.member("normalized", token.is_normalized());
    json.member("special", token.special);
    json.end_object();
  }
  json.end_array();
  const auto part = [&](std::string_view name, const std::string& text) {
    json.key(name);
    json.raw(text);
  };
  part("normalizer", normalizer);
  part("pre_tokenizer", pre_tokenizer);
  part("post_processor", post_processor);
  part("decoder", decoder);
  part("model", model);
  json.end_object();
  return json.take();
}

// A token that comes again under a later id stands there once.
void write_vocabulary(JsonWriter& json, const LegacyVocabulary& vocabulary) {
  std::vector<const LegacyVocabulary::Entry*> entries;
  for (const LegacyVocabulary::Entry& entry : vocabulary.entries())
    if (vocabulary.find(entry.token) == entry.id) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  json.begin_object();
  for (const LegacyVocabulary::Entry* entry : entries) json.member(entry->token, entry->id);
  json.end_object();
}

std::string word_piece_model(const LegacyVocabulary& vocabulary, std::string_view unknown) {
  JsonWriter json;
  json.begin_object();
  json.member("type", "WordPiece");
  json.member("unk_token", unknown);
  json.member("continuing_subword_prefix", "##");
  json.member("max_input_chars_per_word", 100);
  json.key("vocab");
  write_vocabulary(json, vocabulary);
  json.end_object();
  return json.take();
}

std::string bpe_model(const LegacyVocabulary& vocabulary, const LegacyMerges& merges, const LegacyBpeSettings& settings) {
  JsonWriter json;
  json.begin_object();
  json.member("type", "BPE");
  json.key("dropout"), json.null();
  optional_member(json, "unk_token", settings.unknown);
  optional_member(json, "continuing_subword_prefix", settings.prefix);
  optional_member(json, "end_of_word_suffix", settings.suffix);
  json.member("fuse_unk", settings.fuse_unknown);
  json.member("byte_fallback", settings.byte_fallback);
  json.member("ignore_merges", settings.ignore_merges);
  json.key("vocab");
  write_vocabulary(json, vocabulary);
  json.key("merges");
  json.begin_array();
  for (const auto& [left, right] : merges) {
    json.begin_array();
    json.value(left);
    json.value(right);
    json.end_array();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

std::string unigram_model(const LegacyVocabulary& vocabulary, std::optional<int64_t> unknown, bool byte_fallback,
                          const LegacyVocabulary* pieces) {
  JsonWriter json;
  const auto scored = [&json](const char* name, const LegacyVocabulary& tokens) {
    json.key(name);
    json.begin_array();
    for (const LegacyVocabulary::Entry& entry : tokens.entries()) {
      json.begin_array();
      json.value(entry.token);
      json.value(entry.score);
      json.end_array();
    }
    json.end_array();
  };
  json.begin_object();
  json.member("type", "Unigram");
  json.key("unk_id");
  unknown ? json.value(*unknown) : json.null();
  scored("vocab", vocabulary);
  if (pieces) scored("pieces", *pieces);
  json.member("byte_fallback", byte_fallback);
  json.end_object();
  return json.take();
}

std::string template_processing(const LegacyTemplate& single, const LegacyTemplate& pair, const LegacyTokenIds& tokens) {
  JsonWriter json;
  json.begin_object();
  json.member("type", "TemplateProcessing");
  write_template(json, "single", single);
  write_template(json, "pair", pair);
  json.key("special_tokens");
  json.begin_object();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& [token, id] = tokens[i];
    if (std::any_of(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(i),
                    [&](const auto& t) { return t.first == token; }))
      continue;
    json.key(token);
    json.begin_object();
    json.member("id", token);
    json.key("ids");
    json.begin_array(), json.value(id), json.end_array();
    json.key("tokens");
    json.begin_array(), json.value(token), json.end_array();
    json.end_object();
  }
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace calque
