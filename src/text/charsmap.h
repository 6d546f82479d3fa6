// SentencePiece's precompiled map of characters, as the tokenizers library applies it: a double array over the bytes of what is
// replaced, and a pool of what replaces it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece.h"

namespace calque {

class Charsmap {
 public:
  // The bytes of a file's "precompiled_charsmap", in base 64. UserError when they are not one.
  explicit Charsmap(std::string_view base64);
  Piece apply(const Piece& piece, TextStore& store) const;

 private:
  // What replaces the shortest beginning of `text` that is replaced; nothing when there is none.
  std::optional<std::string_view> find(std::string_view text, TextBudget& budget) const;

  std::vector<uint32_t> units_;
  std::string pool_;
};

}  // namespace calque
