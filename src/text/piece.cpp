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

Piece prepend(const Piece& piece, std::string_view prefix, TextStore& store) {
  if (piece.text.empty()) return piece;
  RewrittenText out(store.budget());
  out.put(prefix, piece.original(0, 1));
  out.copy(piece, 0, piece.text.size());
  return store.keep(std::move(out));
}

}  // namespace calque
