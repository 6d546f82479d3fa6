// The added tokens of a tokenizer.json: found in the text before anything else is done with it, never split or merged.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/byte_trie.h"
#include "text/normalizer.h"
#include "text/piece.h"

namespace calque {

class TextModel;

struct AddedToken {
  std::string content;
  bool single_word = false;  // not beside a letter, digit or underscore
  bool lstrip = false;       // takes in the white space before it
  bool rstrip = false;       // and after it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;      // left out when decoding without special tokens
  bool name_only = false;    // says the text alone: if the token is known, it stays as it is
  std::string decoded = {};  // what decoding makes of it: the content as it is normalized
};

class AddedTokens {
 public:
  // In the order of the file. A token that the model has keeps its id; others are numbered behind the model's.
  void add(const std::vector<AddedToken>& tokens, const TextModel& model, const Normalizers& normalizers,
           TextBudget& budget);

  // Splits `text` at the tokens, normalizing what is between them.
  void split(const Piece& text, const Normalizers& normalizers, std::vector<Piece>& out, TextStore& store) const;

  std::optional<uint32_t> token_to_id(std::string_view token) const;
  const AddedToken* find(uint32_t id) const;
  bool is_special(std::string_view token) const { return special_.contains(std::string(token)); }
  const std::map<uint32_t, AddedToken>& by_id() const { return by_id_; }

 private:
  // Finds the longest token at the leftmost place.
  class Finder {
   public:
    void insert(std::string_view token, uint32_t id);
    // The length of the longest token at `at`; 0 for none.
    size_t longest(std::string_view text, size_t at, TextBudget& budget, uint32_t& id) const;
    size_t candidate(std::string_view text, size_t from) const;  // the next place where one may begin
    bool empty() const { return trie_.empty(); }

   private:
    ByteTrie trie_;
    std::array<bool, 256> first_{};
  };
  void split_at(const Finder& finder, const Piece& piece, TextBudget& budget, std::vector<Piece>& out) const;

  std::unordered_map<std::string, uint32_t> ids_;
  std::map<uint32_t, AddedToken> by_id_;
  std::unordered_set<std::string> special_;
  Finder plain_, normalized_;
};

}  // namespace calque
