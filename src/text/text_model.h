// The models of a tokenizer.json: they make tokens of words. Immutable once made, so that any number of threads may use one, each
// with a ModelRoom of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace calque {

class Json;
class TextBudget;

struct ModelToken {
  static constexpr uint32_t end_id = uint32_t{1} << 30;
  uint32_t id : 30;
  uint32_t surface : 1;  // it is called as the text that it stands for, not as its id
  uint32_t shared : 1;   // the next token stands for the same text
  uint32_t size;         // in bytes of the word

  ModelToken(uint32_t token, uint32_t bytes, bool as_text = false, bool with_next = false)
      : id(token & (end_id - 1)), surface(as_text), shared(with_next), size(bytes) {}
};

// The tokens of words seen lately. Bounded: when it is full it starts anew.
class WordCache {
 public:
  WordCache();
  // The tokens of `word`, or null.
  const ModelToken* find(std::string_view word, uint64_t hash, size_t& count) const;
  void insert(std::string_view word, uint64_t hash, const ModelToken* tokens, size_t count);
  static uint64_t hash_of(std::string_view word);

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, size = 0, tokens = 0, count = 0;  // count 0: free
  };
  std::vector<Slot> slots_;
  std::string words_;
  std::vector<ModelToken> tokens_;
};

// Of the best way to a place in a word, as Unigram looks for it.
struct BestPath {
  double score = 0;
  uint32_t start = 0;
  uint32_t id = 0;
};

// What a model needs to work, kept from word to word.
struct ModelRoom {
  WordCache cache;
  std::vector<BestPath> paths;
};

class TextModel {
 public:
  virtual ~TextModel() = default;

  virtual size_t vocab_size() const { return vocabulary_.size(); }
  std::optional<uint32_t> token_to_id(std::string_view token) const { return vocabulary_.find(token); }
  const std::string* id_to_token(uint32_t id) const { return vocabulary_.token(id); }
  virtual bool is_bpe() const { return false; }

  // Does the vocabulary hold the whole byte alphabet, so that no character is ever unknown?
  virtual bool knows_bytes() const { return false; }
  // Appends the tokens of a word. With `bytes`, allowed if knows_bytes(), its bytes stand for the characters of the byte
  // alphabet.
  void tokenize(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room, std::vector<ModelToken>& out) const;

 protected:
  // The tokens of a word that is not empty and was not seen lately. Each of its bytes is paid for once.
  virtual void split(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
                     std::vector<ModelToken>& out) const = 0;

  Vocabulary vocabulary_;
};

// The "model" of a tokenizer.json.
std::unique_ptr<TextModel> make_model(const Json& json);

// One byte of a character that the vocabulary does not have: <0x0A>
std::string byte_token(unsigned char byte);

}  // namespace calque
