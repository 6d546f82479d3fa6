// WordLevel, whose tokens are whole words, and WordPiece, which takes the longest token that fits, again and again.
#pragma once

#include "text/byte_trie.h"
#include "text/text_model.h"

namespace calque {

// The token for what the vocabulary does not have.
class UnknownToken {
 public:
  UnknownToken(const Json& json, const Vocabulary& vocabulary);
  uint32_t for_word(std::string_view word) const;  // UserError when there is none

 private:
  std::string name_;
  std::optional<uint32_t> id_;
};

class WordLevel final : public TextModel {
 public:
  explicit WordLevel(const Json& json);

 private:
  void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  std::optional<UnknownToken> unknown_;
};

class WordPiece final : public TextModel {
 public:
  explicit WordPiece(const Json& json);

 private:
  void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  std::optional<UnknownToken> unknown_;
  ByteTrie first_, continuing_;  // tokens at the beginning of a word; those that go on, without their prefix
  size_t longest_word_;          // in characters; what is longer is unknown
};

}  // namespace calque
