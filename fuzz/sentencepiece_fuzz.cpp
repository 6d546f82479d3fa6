// Any bytes as a SentencePiece model: its pieces lie inside the bytes, are characters, and each stands there once, or one UserError.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "calque/base/error.h"
#include "text/legacy/sentencepiece.h"

using namespace calque;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> copy(data, data + size);
  const auto bytes = std::as_bytes(std::span(copy));
  const char* const begin = reinterpret_cast<const char*>(copy.data());
  const auto inside = [&](std::string_view text) {
    return text.data() >= begin && text.data() + text.size() <= begin + size;
  };
  try {
    const SentencePieceModel model = read_sentencepiece(bytes, "fuzz");
    std::set<std::string_view> seen;
    for (const SentencePiece& piece : model.pieces) {
      require(!piece.text.empty() && inside(piece.text) && is_valid_utf8(piece.text));
      require(std::isfinite(piece.score) && seen.insert(piece.text).second);
    }
    require(!model.pieces.empty());
    require(model.precompiled_charsmap.empty() || inside(model.precompiled_charsmap));
    require(is_valid_utf8(model.unk_piece) && is_valid_utf8(model.bos_piece) && is_valid_utf8(model.eos_piece));
  } catch (const UserError&) {
  }
  return 0;
}
