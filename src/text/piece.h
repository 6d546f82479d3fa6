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
  const TextRange* origin = nullptr;  // one a byte: the characters it stands for; null while the text is as it was given
  uint32_t base = 0;                  // without `origin`: where the piece begins
  int64_t added = -1;                 // the id, when it is an added token

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

// `prefix` in front of a piece; it stands for the piece's first character, as does that character itself.
Piece prepend(const Piece& piece, std::string_view prefix, TextStore& store);

}  // namespace calque
