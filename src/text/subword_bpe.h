// Byte-pair encoding as subword-nmt writes it: merges join the characters of a word, whose last one has "</w>" behind it; what was joined
// is a token of the vocabulary when it ends the word, and with "@@" behind it otherwise. No file has it: legacy/subword_classes.cpp makes
// it for classes of Python alone.
#pragma once

#include <unordered_map>

#include "text/text_model.h"
#include "text/word_models.h"

namespace calque {

class SubwordBpe final : public TextModel {
 public:
  // {"vocab": {...}, "merges": [["a", "b"], ...], "unk_token": "..."}; merges of null: it can only decode.
  explicit SubwordBpe(const Json& json);

 private:
  struct SubwordMerge {
    uint32_t rank = 0, id = 0;
  };
  struct SubwordSymbol {
    uint32_t id, size;  // id: no_symbol for a character that is part of no merge
  };

  void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  uint32_t symbol_of(const std::string& text);
  const SubwordMerge* merge_of(const SubwordSymbol& a, const SubwordSymbol& b) const;

  std::unordered_map<std::string, uint32_t> symbols_;  // what merges join and make
  std::unordered_map<uint64_t, SubwordMerge> merges_;
  std::optional<UnknownToken> unknown_;
  bool can_encode_ = false;
};

}  // namespace calque
