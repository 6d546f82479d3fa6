// The pre-tokenizers of a tokenizer.json: they split the text into words, within which alone tokens are made.
#pragma once

#include <memory>
#include <vector>

#include "text/piece.h"

namespace calque {

class Json;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Appends the parts of `piece`, which is not an added token. Empty parts may be among them. Searching and rewriting are paid
  // from the store's budget.
  virtual void split(const Piece& piece, std::vector<Piece>& out, TextStore& store) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  // The last step is byte-level: it only splits, and the model takes the bytes of its words for characters.
  bool bytes = false;

  // Splits all that is in `pieces`; empty parts are dropped. `other` is room to work in.
  void apply(std::vector<Piece>& pieces, std::vector<Piece>& other, TextStore& store) const;
};

// `model_takes_bytes`: `bytes` may be set.
PreTokenizers make_pre_tokenizers(const Json& json, bool model_takes_bytes, ExpressionBudget& budget);

}  // namespace calque
