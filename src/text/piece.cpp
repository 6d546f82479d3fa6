#include "text/piece.h"

namespace calque {

void RewrittenText::copy(const Piece& piece, size_t begin, size_t end) {
  budget_->take((end - begin) * (1 + sizeof(TextRange)));
  text.append(piece.text, begin, end - begin);
  if (piece.origin) {
    origin.insert(origin.end(), piece.origin + begin, piece.origin + end);
    return;
  }
  for (size_t i = begin; i < end;) {
    const uint32_t size = decode_utf8(piece.text.data() + i).size;
    const auto from = static_cast<uint32_t>(piece.base + i);
    origin.insert(origin.end(), size, {from, from + size});
    i += size;
  }
}

Piece rewrite(const Piece& piece, const std::vector<CharacterChange>& changes, TextStore& store) {
  RewrittenText out(store.budget());
  out.text.reserve(piece.text.size());
  size_t at = 0;  // in the piece
  for (const CharacterChange& change : changes) {
    const size_t from = change.grown > 0 || at == piece.text.size() ? at - (at > 0) : at;
    TextRange origin{};
    if (change.grown <= 0 || at > 0) origin = piece.original(from, from + 1);
    out.put(change.c, origin);
    for (int64_t n = change.grown; n <= 0 && at < piece.text.size(); ++n) at += decode_utf8(piece.text.data() + at).size;
  }
  return store.keep(std::move(out));
}

Piece prepend(const Piece& piece, std::string_view prefix, TextStore& store) {
  if (piece.text.empty()) return piece;
  RewrittenText out(store.budget());
  out.put(prefix, piece.original(0, 1));
  out.copy(piece, 0, piece.text.size());
  return store.keep(std::move(out));
}

}  // namespace calque
