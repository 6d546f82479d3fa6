// Byte-pair encoding: a vocabulary, and merges of neighbours in the order in which they were learnt. Immutable once made,
// so that any number of threads may use it, each with a BpeCache of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace calque {

class Json;
class TextBudget;

struct BpeToken {
  uint32_t id;
  uint32_t size;  // in bytes of the word
};

// The tokens of words seen lately. Bounded: when it is full it starts anew.
class BpeCache {
 public:
  BpeCache();
  // The tokens of `word`, or null.
  const BpeToken* find(std::string_view word, uint64_t hash, size_t& count) const;
  void insert(std::string_view word, uint64_t hash, const BpeToken* tokens, size_t count);
  static uint64_t hash_of(std::string_view word);

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, size = 0, tokens = 0, count = 0;  // count 0: free
  };
  std::vector<Slot> slots_;
  std::string words_;
  std::vector<BpeToken> tokens_;
};

class Bpe {
 public:
  // The "model" of a tokenizer.json.
  explicit Bpe(const Json& json);

  // Does the vocabulary hold the whole byte alphabet, so that no character is ever unknown?
  bool knows_bytes() const;
  // Appends the tokens of a word. With `bytes`, allowed if knows_bytes(), its bytes stand for the characters of the byte
  // alphabet.
  void tokenize(std::string_view word, bool bytes, TextBudget& budget, BpeCache& cache, std::vector<BpeToken>& out) const;

  size_t vocab_size() const { return ids_.size(); }
  std::optional<uint32_t> token_to_id(std::string_view token) const;
  const std::string* id_to_token(uint32_t id) const;  // null when there is none

 private:
  struct Merge {
    uint64_t pair = empty_pair;
    uint32_t rank = 0, id = 0;
    static constexpr uint64_t empty_pair = ~uint64_t{0};
  };
  struct Symbol {
    uint32_t id, size, rank;  // of the merge with what follows
  };
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };

  void read_vocab(const Json& json);
  void read_merges(const Json& json);
  void add_merge(std::string_view a, std::string_view b, uint32_t rank);
  const Merge* merge_of(uint32_t a, uint32_t b) const;
  uint32_t rank_of(uint32_t a, uint32_t b) const;
  void first_symbols(std::string_view word, TextBudget& budget, std::vector<Symbol>& out) const;
  void merge_short(std::vector<Symbol>& symbols) const;
  void merge_long(std::vector<Symbol>& symbols) const;

  std::unordered_map<std::string, uint32_t, StringHash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // by id
  std::vector<Merge> merges_;               // a hash table: a power of two of places, at most half of them used
  std::array<int64_t, 256> byte_ids_{};     // of the byte alphabet's characters; -1: not in the vocabulary
  std::optional<uint32_t> unknown_;
  std::string unknown_name_;
  std::string prefix_, suffix_;  // continuing_subword_prefix, end_of_word_suffix
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace calque
