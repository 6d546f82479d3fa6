// Unigram, SentencePiece's model: every token has a score, and a word is split into the tokens whose scores are best together.
#pragma once

#include "text/byte_trie.h"
#include "text/text_model.h"

namespace calque {

class Unigram final : public TextModel {
 public:
  explicit Unigram(const Json& json);
  size_t vocab_size() const override { return scores_.size(); }

 private:
  void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  void find_best(std::string_view word, TextBudget& budget, std::vector<BestPath>& paths) const;
  void add_unknown(std::string_view text, std::vector<ModelToken>& out) const;
  uint32_t unknown() const;  // UserError when there is none

  ByteTrie trie_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  std::optional<uint32_t> unknown_;
  bool byte_fallback_ = false;
};

}  // namespace calque
