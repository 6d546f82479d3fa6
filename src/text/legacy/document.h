// A tokenizer.json in the making: its parts as JSON text, and the tokens added to its model, which get the ids that the tokenizers
// library would give them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/legacy/vocabulary.h"

namespace calque {

class JsonWriter;

struct LegacyToken {
  std::string content{};
  bool single_word = false, lstrip = false, rstrip = false, special = false;
  std::optional<bool> normalized{};  // not said: when it is not special
  bool is_normalized() const { return normalized.value_or(!special); }
  bool operator==(const LegacyToken& other) const;
};

// A piece of a post-processor's template: a text ("$A", "$B") or a special token.
struct LegacyTemplatePiece {
  std::string text;
  int64_t type = 0;
};
using LegacyTemplate = std::vector<LegacyTemplatePiece>;

class TokenizerDocument {
 public:
  LegacyVocabulary vocabulary;  // of the model
  bool scored = false;          // whether its tokens are counted with those that come twice, as Unigram's are
  std::string model;            // JSON
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";

  void add(const LegacyToken& token);
  bool is_added(const LegacyToken& token) const;  // exactly so
  bool has_added(std::string_view content) const { return added(content) != nullptr; }
  std::optional<int64_t> find(std::string_view token) const;  // among what was added, then in the model
  std::optional<std::string> token_of(int64_t id) const;
  std::string text() const;

 private:
  const LegacyToken* added(std::string_view content) const;
  int64_t next_id() const;
  std::map<int64_t, LegacyToken> added_;
  std::unordered_map<std::string, int64_t, LegacyTextHash, std::equal_to<>> added_ids_;
};

struct LegacyBpeSettings {
  std::optional<std::string> unknown{}, prefix{}, suffix{};
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};

void write_vocabulary(JsonWriter& json, const LegacyVocabulary& vocabulary);  // by id
std::string word_piece_model(const LegacyVocabulary& vocabulary, std::string_view unknown);
std::string bpe_model(const LegacyVocabulary& vocabulary, const LegacyMerges& merges, const LegacyBpeSettings& settings);
// With `pieces` these have the scores, and the vocabulary the ids alone.
std::string unigram_model(const LegacyVocabulary& vocabulary, std::optional<int64_t> unknown, bool byte_fallback,
                          const LegacyVocabulary* pieces = nullptr);

// Each special token is given with its id.
using LegacyTokenIds = std::vector<std::pair<std::string, int64_t>>;
std::string template_processing(const LegacyTemplate& single, const LegacyTemplate& pair, const LegacyTokenIds& tokens);

}  // namespace calque
