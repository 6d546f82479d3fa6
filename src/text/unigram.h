// Unigram, SentencePiece's model: every token has a score, and a word is split into the tokens whose scores are best together.
// With "pieces" in its JSON it works as SentencePiece itself: they have the scores, in single precision, and the vocabulary the ids;
// a piece that has no id is the unknown token. Files have none: legacy/dictionary_classes.cpp makes them.
#pragma once

#include "text/byte_trie.h"
#include "text/text_model.h"

namespace calque {

class Unigram final : public TextModel {
 public:
  explicit Unigram(const Json& json);
  size_t vocab_size() const override { return tokens_; }

 private:
  void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  void find_best(std::string_view word, TextBudget& budget, std::vector<BestPath>& paths) const;
  void add_unknown(std::string_view text, std::vector<ModelToken>& out) const;
  void read_pieces(const Json& json);
  uint32_t unknown() const;  // UserError when there is none
  uint32_t id_of(uint32_t token) const;

  ByteTrie trie_;
  std::vector<double> scores_;  // by id, or by piece
  std::optional<std::vector<uint32_t>> piece_ids_;
  size_t tokens_ = 0;  // of the vocabulary, with those that come twice
  double unknown_score_ = 0;
  std::optional<uint32_t> unknown_;
  bool byte_fallback_ = false;
};

}  // namespace calque
