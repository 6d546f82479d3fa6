// The normalizers of a tokenizer.json: they rewrite the text before it is split.
#pragma once

#include <memory>
#include <vector>

#include "text/piece.h"

namespace calque {

class Json;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual Piece apply(const Piece& piece, TextStore& store) const = 0;
};

// The steps, in order; none for null. UserError names a kind that is not known.
std::vector<std::unique_ptr<Normalizer>> make_normalizers(const Json& json);

// `content` in the place of each match of `pattern`: it stands for the last character that it replaces.
class SplitPattern;
Piece replace_matches(const Piece& piece, const SplitPattern& pattern, std::string_view content, TextStore& store);
// {"String": ...} or {"Regex": ...}
std::unique_ptr<SplitPattern> make_pattern(const Json& json);

}  // namespace calque
