#include "text/bpe.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "text/budget.h"
#include "text/byte_alphabet.h"
#include "text/json_parts.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr uint32_t no_rank = std::numeric_limits<uint32_t>::max();
constexpr std::string_view word_begin = "\xE2\x96\x81";  // U+2581, SentencePiece's space
constexpr size_t short_word = 48;                        // symbols: up to here scanning beats a heap

uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15;
  return x ^ x >> 29;
}

[[noreturn]] void fail(const std::string& what) { throw UserError(ErrorKind::bad_file, "tokenizer: " + what); }

}  // namespace

// ---- reading ------------------------------------------------------------------------------------------------------

Bpe::Bpe(const Json& json) {
  if (const Json* dropout = json.find("dropout"); dropout && !dropout->is_null() && dropout->to_float() != 0)
    unsupported_part("model option", "dropout");
  prefix_ = text_or(json, "continuing_subword_prefix", "");
  suffix_ = text_or(json, "end_of_word_suffix", "");
  fuse_unknown_ = flag_or(json, "fuse_unk", false);
  byte_fallback_ = flag_or(json, "byte_fallback", false);
  ignore_merges_ = flag_or(json, "ignore_merges", false);
  vocabulary_.read(json.at("vocab"));
  words_begin_ = prefix_.empty() && suffix_.empty() && !ignore_merges_ && token_to_id(word_begin);
  read_merges(json.at("merges"));
  unknown_name_ = text_or(json, "unk_token", "");
  if (!unknown_name_.empty()) unknown_ = token_to_id(unknown_name_);
  for (size_t b = 0; b < 256; ++b) {
    const auto id = token_to_id(byte_characters()[b]);
    byte_ids_[b] = id ? static_cast<int64_t>(*id) : -1;
  }
}

void Bpe::read_merges(const Json& json) {
  const auto items = json.items();
  size_t places = 16;
  while (places < items.size() * 2) places *= 2;
  merges_.resize(places);
  uint32_t rank = 0;
  for (const Json& item : items) {
    if (item.is_string()) {  // "a b", as merges.txt has them
      const std::string_view line = item.to_string();
      if (line.starts_with("#version")) continue;
      const size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
        item.fail("a merge is two tokens with a space between them, found \"" + excerpt(line) + "\"");
      add_merge(line.substr(0, space), line.substr(space + 1), rank++);
    } else {
      const auto pair = item.items();
      if (pair.size() != 2) item.fail("a merge is two tokens, found " + std::to_string(pair.size()));
      add_merge(pair[0].to_string(), pair[1].to_string(), rank++);
    }
  }
}

void Bpe::add_merge(std::string_view a, std::string_view b, uint32_t rank) {
  const auto known = [&](std::string_view token) {
    const auto id = token_to_id(token);
    if (!id)
      fail("merge " + std::to_string(rank) + " (\"" + excerpt(a) + "\" \"" + excerpt(b) + "\"): the token \"" +
           excerpt(token) + "\" is not in the vocabulary");
    return *id;
  };
  const uint32_t left = known(a), right = known(b);
  if (b.starts_with(word_begin) && !a.ends_with(word_begin)) words_begin_ = false;
  const std::string made = std::string(a) + std::string(b.substr(std::min(prefix_.size(), b.size())));
  const uint64_t pair = uint64_t{left} << 32 | right;
  size_t at = mix(pair) & (merges_.size() - 1);
  while (merges_[at].pair != Merge::empty_pair && merges_[at].pair != pair) at = (at + 1) & (merges_.size() - 1);
  merges_[at] = {pair, rank, known(made)};
}

// ---- merging ------------------------------------------------------------------------------------------------------

const Bpe::Merge* Bpe::merge_of(uint32_t a, uint32_t b) const {
  const uint64_t pair = uint64_t{a} << 32 | b;
  for (size_t at = mix(pair) & (merges_.size() - 1);; at = (at + 1) & (merges_.size() - 1)) {
    const Merge& m = merges_[at];
    if (m.pair == pair) return &m;
    if (m.pair == Merge::empty_pair) return nullptr;
  }
}

uint32_t Bpe::rank_of(uint32_t a, uint32_t b) const {
  const Merge* m = merge_of(a, b);
  return m ? m->rank : no_rank;
}

bool Bpe::knows_bytes() const {
  return prefix_.empty() && suffix_.empty() &&
         std::all_of(byte_ids_.begin(), byte_ids_.end(), [](int64_t id) { return id >= 0; });
}

void Bpe::first_symbols(std::string_view word, TextBudget& budget, std::vector<Symbol>& out) const {
  std::optional<Symbol> unknown;  // not yet appended: more unknown characters may join it
  const auto flush = [&] {
    if (unknown) out.push_back(*unknown);
    unknown.reset();
  };
  std::string own;
  for (size_t i = 0; i < word.size();) {
    const uint32_t size = decode_utf8(word.data() + i).size;
    const bool first = i == 0, last = i + size == word.size();
    std::string_view character = word.substr(i, size);
    i += size;
    budget.spend(1 + (prefix_.size() + suffix_.size()) / 8);
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      own = (first ? "" : prefix_) + std::string(character) + (last ? suffix_ : "");
      character = own;
    }
    if (const auto id = token_to_id(character)) {
      flush();
      out.push_back({*id, size, no_rank});
      continue;
    }
    if (byte_fallback_) {
      std::vector<Symbol> fallback;
      budget.take(character.size() * sizeof(Symbol));
      for (const char c : character) {
        const auto found = token_to_id(byte_token(static_cast<unsigned char>(c)));
        if (!found) break;
        fallback.push_back({*found, 1, no_rank});
      }
      if (fallback.size() == character.size()) {
        out.insert(out.end(), fallback.begin(), fallback.end());
        continue;
      }
    }
    if (!unknown_) {
      if (!unknown_name_.empty())
        fail("\"" + excerpt(character) + "\" is not in the vocabulary, and neither is the unk_token \"" +
             excerpt(unknown_name_) + "\"");
      continue;
    }
    if (unknown && fuse_unknown_) {
      unknown->size += size;
    } else {
      flush();
      unknown = Symbol{*unknown_, size, no_rank};
    }
  }
  flush();
}

// The best merge, leftmost first, until there is none.
void Bpe::merge_short(std::vector<Symbol>& s) const {
  for (size_t i = 0; i + 1 < s.size(); ++i) s[i].rank = rank_of(s[i].id, s[i + 1].id);
  while (s.size() > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < s.size(); ++i)
      if (s[i].rank < s[best].rank) best = i;
    if (s[best].rank == no_rank) return;
    const Merge* m = merge_of(s[best].id, s[best + 1].id);
    s[best].id = m->id;
    s[best].size += s[best + 1].size;
    s.erase(s.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    s[best].rank = best + 1 < s.size() ? rank_of(s[best].id, s[best + 1].id) : no_rank;
    if (best > 0) s[best - 1].rank = rank_of(s[best - 1].id, s[best].id);
  }
}

// The same with a heap of candidates and a linked list, for words of any length.
void Bpe::merge_long(std::vector<Symbol>& s) const {
  struct Candidate {
    uint32_t rank, at;
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  constexpr uint32_t none = no_rank;
  const auto n = static_cast<uint32_t>(s.size());
  std::vector<uint32_t> before(n), after(n);
  std::priority_queue<Candidate> heap;
  const auto look = [&](uint32_t at) {
    s[at].rank = after[at] == none ? no_rank : rank_of(s[at].id, s[after[at]].id);
    if (s[at].rank != no_rank) heap.push({s[at].rank, at});
  };
  for (uint32_t i = 0; i < n; ++i) {
    before[i] = i == 0 ? none : i - 1;
    after[i] = i + 1 == n ? none : i + 1;
  }
  for (uint32_t i = 0; i < n; ++i) look(i);
  while (!heap.empty()) {
    const Candidate c = heap.top();
    heap.pop();
    // Outdated: swallowed by a neighbour, or its pair has changed since.
    if (s[c.at].size == 0 || s[c.at].rank != c.rank) continue;
    const uint32_t next = after[c.at];
    s[c.at].id = merge_of(s[c.at].id, s[next].id)->id;
    s[c.at].size += s[next].size;
    s[next].size = 0;
    s[next].rank = no_rank;
    after[c.at] = after[next];
    if (after[next] != none) before[after[next]] = c.at;
    look(c.at);
    if (before[c.at] != none) look(before[c.at]);
  }
  std::erase_if(s, [](const Symbol& x) { return x.size == 0; });
}

// Where no merge reaches over the beginning of a word, words are independent of one another, and seldom new.
void Bpe::split(std::string_view text, bool bytes, TextBudget& budget, ModelRoom& room, std::vector<ModelToken>& out) const {
  if (!words_begin_ || bytes) return split_word(text, bytes, budget, out);
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (text.substr(end).starts_with(word_begin)) end += word_begin.size();
    end = std::min(text.find(word_begin, end), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    const uint64_t hash = WordCache::hash_of(word);
    size_t count = 0;
    if (const ModelToken* known = room.cache.find(word, hash, count)) {
      out.insert(out.end(), known, known + count);
      continue;
    }
    const size_t start = out.size();
    split_word(word, bytes, budget, out);
    room.cache.insert(word, hash, out.data() + start, out.size() - start);
  }
}

void Bpe::split_word(std::string_view word, bool bytes, TextBudget& budget, std::vector<ModelToken>& out) const {
  if (ignore_merges_) {
    std::string characters;
    if (bytes)
      for (const char c : word) characters += byte_characters()[static_cast<unsigned char>(c)];
    if (const auto whole = token_to_id(bytes ? characters : word)) {
      out.emplace_back(*whole, static_cast<uint32_t>(word.size()));
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  if (bytes)
    for (const char c : word)
      symbols.push_back({static_cast<uint32_t>(byte_ids_[static_cast<unsigned char>(c)]), 1, no_rank});
  else
    first_symbols(word, budget, symbols);
  if (symbols.size() <= short_word)
    merge_short(symbols);
  else
    merge_long(symbols);
  for (const Symbol& s : symbols) out.emplace_back(s.id, s.size);
}

}  // namespace calque
