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
  // With `longest` it replaces as SentencePiece itself does: the longest beginning of what is left, again and again.
  explicit Charsmap(std::string_view base64, bool longest = false);
  Piece apply(const Piece& piece, TextStore& store) const;

 private:
  // What replaces the shortest beginning of `text` that is replaced, or the longest, and how long that is; nothing when there is none.
  struct Found {
    std::string_view made;
    size_t size;
  };
  std::optional<Found> find(std::string_view text, TextBudget& budget) const;
  Piece apply_longest(const Piece& piece, TextStore& store) const;

  std::vector<uint32_t> units_;
  std::string pool_;
  bool longest_;
};

}  // namespace calque
