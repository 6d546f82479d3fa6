// A stretch of text on its way to tokens, with where each of its bytes came from. Pieces are views: of the text to encode,
// or of a text that was rewritten, which a TextStore keeps alive until the encoding is done.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/budget.h"
#include "text/utf8.h"

namespace calque {

struct TextRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Piece {
  std::string_view text;
  const TextRange* origin =
      nullptr;         // one a byte: the characters it stands for; null while each stands for that at its place
  uint32_t base = 0;   // without `origin`: where the piece begins
  int64_t added = -1;  // the id, when it is an added token

  Piece slice(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), origin ? origin + begin : nullptr, static_cast<uint32_t>(base + begin), -1};
  }
  // The whole characters that the bytes [begin, end) stand for; begin < end.
  TextRange original(size_t begin, size_t end) const {
    if (origin) return {origin[begin].begin, origin[end - 1].end};
    while (begin > 0 && is_utf8_continuation(text[begin])) --begin;
    while (end < text.size() && is_utf8_continuation(text[end])) ++end;
    return {static_cast<uint32_t>(base + begin), static_cast<uint32_t>(base + end)};
  }
};

// A text in the making, paid for as it grows.
struct RewrittenText {
  std::string text;
  std::vector<TextRange> origin;

  explicit RewrittenText(TextBudget& budget) : budget_(&budget) {}
  void put(char32_t c, TextRange from) {
    append_utf8(text, c);
    budget_->take((text.size() - origin.size()) * (1 + sizeof from));
    origin.resize(text.size(), from);
  }
  void put(std::string_view s, TextRange from) {
    budget_->take(s.size() * (1 + sizeof from));
    text += s;
    origin.resize(text.size(), from);
  }
  // Bytes without their origins; all of the text then.
  void put_bytes(std::string_view bytes) {
    budget_->take(bytes.size());
    text = bytes;
  }
  // The bytes [begin, end) of `piece`, whole characters, as they are.
  void copy(const Piece& piece, size_t begin, size_t end);

 private:
  TextBudget* budget_;
};

// Keeps what is made of one text.
class TextStore {
 public:
  explicit TextStore(TextBudget& budget) : budget_(budget) {}
  TextBudget& budget() { return budget_; }
  // A piece that views `text`.
  Piece keep(RewrittenText text) {
    budget_.take(sizeof(RewrittenText));
    texts_.push_back(std::move(text));
    return {texts_.back().text, texts_.back().origin.data(), 0, -1};
  }

 private:
  TextBudget& budget_;
  std::deque<RewrittenText> texts_;
};

// A character of a text that is rewritten, and by how many characters the text grows with it: 0 takes the place of one, 1 is
// put in, -n takes the place of n + 1.
struct CharacterChange {
  char32_t c;
  int64_t grown;
};
// The whole of `piece` rewritten. What is put in stands for the character before it.
Piece rewrite(const Piece& piece, const std::vector<CharacterChange>& changes, TextStore& store);

// Each character of `piece` as map(c, put) puts it, once, several times or not at all; what is put stands for that character.
template <class Map>
Piece map_characters(const Piece& piece, TextStore& store, Map&& map) {
  RewrittenText out(store.budget());
  out.text.reserve(piece.text.size());
  for (size_t i = 0; i < piece.text.size();) {
    const Utf8Char c = decode_utf8(piece.text.data() + i);
    const TextRange origin = piece.original(i, i + 1);
    map(c.value, [&](char32_t to) { out.put(to, origin); });
    i += c.size;
  }
  return store.keep(std::move(out));
}

// `piece` with other bytes, as many, each in the place of its own: map(byte).
template <class Map>
Piece map_bytes(const Piece& piece, TextStore& store, Map&& map) {
  RewrittenText out(store.budget());
  out.put_bytes(piece.text);
  for (char& c : out.text) c = map(c);
  Piece made = store.keep(std::move(out));
  made.origin = piece.origin;
  made.base = piece.base;
  return made;
}

// `prefix` in front of a piece; it stands for the piece's first character, as does that character itself.
Piece prepend(const Piece& piece, std::string_view prefix, TextStore& store);

}  // namespace calque
