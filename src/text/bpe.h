// Byte-pair encoding: a vocabulary, and merges of neighbours in the order in which they were learnt.
#pragma once

#include <array>

#include "text/text_model.h"

namespace calque {

class Bpe final : public TextModel {
 public:
  // The "model" of a tokenizer.json.
  explicit Bpe(const Json& json);

  bool is_bpe() const override { return true; }
  bool knows_bytes() const override;

 private:
  struct Merge {
    uint64_t pair = empty_pair;
    uint32_t rank = 0, id = 0;
    static constexpr uint64_t empty_pair = ~uint64_t{0};
  };
  struct Symbol {
    uint32_t id, size, rank;  // of the merge with what follows
  };

  void split(std::string_view text, bool bytes, TextBudget& budget, ModelRoom& room,
             std::vector<ModelToken>& out) const override;
  void split_word(std::string_view word, bool bytes, TextBudget& budget, std::vector<ModelToken>& out) const;
  void read_merges(const Json& json);
  void add_merge(std::string_view a, std::string_view b, uint32_t rank);
  const Merge* merge_of(uint32_t a, uint32_t b) const;
  uint32_t rank_of(uint32_t a, uint32_t b) const;
  void first_symbols(std::string_view word, TextBudget& budget, std::vector<Symbol>& out) const;
  void merge_short(std::vector<Symbol>& symbols) const;
  void merge_long(std::vector<Symbol>& symbols) const;

  std::vector<Merge> merges_;            // a hash table: a power of two of places, at most half of them used
  std::array<int64_t, 256> byte_ids_{};  // of the byte alphabet's characters; -1: not in the vocabulary
  std::optional<uint32_t> unknown_;
  std::string unknown_name_;
  std::string prefix_, suffix_;  // continuing_subword_prefix, end_of_word_suffix
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
  bool words_begin_ = false;  // no merge joins another character to a U+2581 behind it
};

}  // namespace calque
