#include "text/text_model.h"

#include <algorithm>
#include <cstring>

#include "text/bpe.h"
#include "text/budget.h"
#include "text/json_parts.h"
#include "text/subword_bpe.h"
#include "text/unigram.h"
#include "text/word_models.h"

namespace calque {
namespace {

constexpr size_t cache_slots = 1 << 15;
constexpr size_t cache_word_bytes = 1 << 20;
constexpr size_t longest_cached_word = 256;
constexpr size_t most_cached_tokens = 256;  // of a word

uint64_t stir(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15;
  return x ^ x >> 29;
}

}  // namespace

// ---- the cache ----------------------------------------------------------------------------------------------------

WordCache::WordCache() : slots_(cache_slots) {}

uint64_t WordCache::hash_of(std::string_view word) {
  uint64_t h = 0x2545F4914F6CDD1D ^ word.size();
  const char* p = word.data();
  size_t n = word.size();
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t x;
    std::memcpy(&x, p, 8);
    h = stir(h ^ x);
  }
  uint64_t x = 0;
  std::memcpy(&x, p, n);
  return stir(stir(h ^ x));
}

const ModelToken* WordCache::find(std::string_view word, uint64_t hash, size_t& count) const {
  const Slot& s = slots_[hash & (cache_slots - 1)];
  if (s.count == 0 || s.hash != hash || s.size != word.size() ||
      std::memcmp(words_.data() + s.word, word.data(), s.size) != 0)
    return nullptr;
  count = s.count;
  return tokens_.data() + s.tokens;
}

void WordCache::insert(std::string_view word, uint64_t hash, const ModelToken* tokens, size_t count) {
  if (count == 0 || count > most_cached_tokens || word.size() > longest_cached_word) return;
  if (words_.size() + word.size() > cache_word_bytes) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    words_.clear();
    tokens_.clear();
  }
  slots_[hash & (cache_slots - 1)] = {hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(word.size()),
                                      static_cast<uint32_t>(tokens_.size()), static_cast<uint32_t>(count)};
  words_ += word;
  tokens_.insert(tokens_.end(), tokens, tokens + count);
}

// ---- models -------------------------------------------------------------------------------------------------------

void TextModel::tokenize(std::string_view word, bool bytes, TextBudget& budget, ModelRoom& room,
                         std::vector<ModelToken>& out) const {
  if (word.empty()) return;
  budget.spend(word.size());
  const uint64_t hash = WordCache::hash_of(word);
  size_t count = 0;
  if (const ModelToken* known = room.cache.find(word, hash, count)) {
    out.insert(out.end(), known, known + count);
    return;
  }
  const size_t start = out.size();
  split(word, bytes, budget, room, out);
  room.cache.insert(word, hash, out.data() + start, out.size() - start);
}

std::unique_ptr<TextModel> make_model(const Json& json) {
  // Files older than the type field show by their members what they are.
  std::string_view type = "WordLevel";
  if (const Json* named = json.find("type"))
    type = named->to_string();
  else if (json.find("merges"))
    type = "BPE";
  else if (json.find("max_input_chars_per_word"))
    type = "WordPiece";
  else if (json.at("vocab").is_array())
    type = "Unigram";
  if (type == "BPE") return std::make_unique<Bpe>(json);
  if (type == "SubwordBPE") return std::make_unique<SubwordBpe>(json);  // Calque's own
  if (type == "WordPiece") return std::make_unique<WordPiece>(json);
  if (type == "WordLevel") return std::make_unique<WordLevel>(json);
  if (type == "Unigram") return std::make_unique<Unigram>(json);
  unsupported_part("model", type);
}

std::string byte_token(unsigned char byte) {
  static constexpr char digits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

}  // namespace calque
