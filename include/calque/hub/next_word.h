// A model class that says a word where it is asked for one, not after each word that it reads (XLNet, XLM): what it reads before the
// next word of a text is its own, and generate (calque/generate/model_generate.h) asks it.
#pragma once

#include "calque/hub/model_io.h"

namespace calque {

class NextWordModel {
 public:
  virtual ~NextWordModel() = default;
  // The inputs after which the last logits are those of the word behind `ids` [rows, length]. `before` is the output of the step before,
  // empty at first, and `rows` which of its rows these continue; undefined: the same ones.
  virtual ModelInputs next_word_inputs(const Tensor& ids, const ModelOutput& before, const Tensor& rows) const = 0;
};

}  // namespace calque
