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
  // What is rewritten is paid from the store's budget.
  virtual Piece apply(const Piece& piece, TextStore& store) const = 0;
};
using Normalizers = std::vector<std::unique_ptr<Normalizer>>;

// The steps, in order; none for null. UserError names a kind that is not known.
Normalizers make_normalizers(const Json& json, ExpressionBudget& budget);
// `piece` after all of them.
Piece apply_normalizers(const Normalizers& normalizers, Piece piece, TextStore& store);

// `content` in the place of each match of `pattern`: it stands for the last character that it replaces.
class SplitPattern;
Piece replace_matches(const Piece& piece, const SplitPattern& pattern, std::string_view content, TextStore& store);
// {"String": ...} or {"Regex": ...}
std::unique_ptr<SplitPattern> make_pattern(const Json& json, ExpressionBudget& budget);

}  // namespace calque
