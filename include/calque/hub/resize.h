// Vocabularies and positions that grow and shrink: the input embedding, everything tied to it, an untied head with its bias, and the configs.
#pragma once

#include <optional>

#include "calque/hub/pretrained_model.h"

namespace calque {

struct ResizeOptions {
  std::optional<double> pad_to_multiple_of = {};  // the new size is rounded up to one; must be a whole number
  // New rows: around the mean of the old ones with their covariance, which leaves a language model's predictions as they
  // were (transformers 5); else as the architecture initialises (transformers 4).
  bool mean_resizing = true;
};

// Rows are added or removed at the end; dtype, device and requires_grad stay. Without a size (and without padding) nothing happens.
// Gives the input embedding, which is the same module as before.
Embedding& resize_token_embeddings(PretrainedModel& model, std::optional<int64_t> new_num_tokens = std::nullopt,
                                   const ResizeOptions& options = {});

// A module with a layer whose input features are tokens, [size, vocabulary]: its columns come and go with the rows.
struct VocabularyColumns {
  virtual ~VocabularyColumns() = default;
  virtual Linear& vocabulary_columns() = 0;
};

// A table of positions that can have more or fewer rows.
struct ResizablePositions {
  virtual ~ResizablePositions() = default;
  virtual void resize_positions(int64_t count) = 0;
};
// The longest text that the model takes. Learned rows stay; new ones are random. UserError for a class that cannot.
void resize_position_embeddings(PretrainedModel& model, int64_t count);

// The model's own, or its base model's. UserError for a class that has none.
Embedding& get_input_embeddings(PretrainedModel& model);
// Null for a class that has none.
Linear* get_output_embeddings(PretrainedModel& model);

}  // namespace calque
