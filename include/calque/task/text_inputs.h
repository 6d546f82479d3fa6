// What a model takes, made of texts: ids, the mask of what is no padding, and token types where the class takes them, as
// transformers' tokenizer(texts, padding=True, return_tensors="pt") makes them. Sides, padding and limits are those of the tokenizer's
// files; a text that is longer than the model reads is cut or refused, never run past the model's positions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calque/hub/model_inputs.h"
#include "calque/text/tokenizer.h"

namespace calque {

class PretrainedModel;

struct TextInputOptions {
  bool add_special_tokens = true;
  // A text of more than max_length tokens is cut, and a warning says so; without `truncate` it is a UserError.
  bool truncate = true;
  std::optional<size_t> max_length = {};  // else longest_input
  BatchOptions::Truncation strategy = BatchOptions::Truncation::longest_first;
  size_t stride = 0;      // with overflow: tokens that a row shares with the row before it
  bool overflow = false;  // what is cut off becomes further rows, and no warning
  // Else the tokenizer's. Decoders that are to write on from several texts are padded on the left.
  std::optional<TextSide> padding_side = {};
  OffsetUnit offsets = OffsetUnit::characters;
};

struct TextInputs {
  ModelInputs inputs;
  Batch batch;  // the rows that they were made of
};

// UserError for texts without any token, and for several of different lengths where the class takes no mask.
TextInputs text_inputs(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TextInput> texts,
                       const TextInputOptions& options = {});

// How many tokens the model reads at once, as its tokenizer and its positions say; empty where neither has a limit.
std::optional<size_t> longest_input(const PretrainedModel& model, const Tokenizer& tokenizer);
// What the model's positions alone say.
std::optional<size_t> model_positions(const PretrainedModel& model);

// Told how much is done of how much; may throw, which ends the work.
using TaskProgress = std::function<void(size_t done, size_t all)>;

// What a model takes of texts, in batches of about equal lengths, the longest first; fn gets each with the places of its texts. A batch
// in which padding would cost more than a call of the model does is given in several parts. `options` without `overflow`.
void in_batches(const PretrainedModel& model, const Tokenizer& tokenizer, std::span<const TextInput> texts,
                const TextInputOptions& options, size_t batch_size, const TaskProgress& progress,
                const std::function<void(const TextInputs&, std::span<const size_t>)>& fn);

}  // namespace calque
