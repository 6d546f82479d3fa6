// Embeddings of words and positions that differ from a plain table: scaled words, learned positions that start at row 2,
// sinusoids that are computed.
#pragma once

#include <optional>
#include <string>

#include "calque/hub/adaptable.h"
#include "calque/nn/linear.h"
#include "family_module.h"

namespace calque {

// Words times a factor. A family gives it its own class name.
struct ScaledWordEmbedding : NamedModule<ScaledWordEmbedding, Embedding>, ScaledEmbeddings {
  static constexpr const char* forward_arguments[] = {"input_ids"};
  ScaledWordEmbedding(std::string name, int64_t words, int64_t size, std::optional<int64_t> padding, double scale);
  Tensor forward(const Tensor& input_ids);
  Tensor scale_of_embeddings() const override;
  double scale;
};

// Learned positions. Its first two rows are padding.
struct OffsetPositions : NamedModule<OffsetPositions, Embedding> {
  static constexpr int64_t offset = 2;
  static constexpr const char* forward_arguments[] = {"position_ids"};
  OffsetPositions(const char* name, int64_t positions, int64_t size);
  Tensor forward(const Tensor& position_ids);
};

// Positions as tensor2tensor has them: sines in the first half of a row, cosines in the second; the padding's row is zeros.
Tensor sinusoidal_table(int64_t rows, int64_t size, std::optional<int64_t> padding);
// The rows of such a table at `positions` of any shape, all of them below `length`. Where the table ends before, or while a
// program is traced whose length is not known, the rows are computed from the positions, so that there is no longest text
// and no module changes in its forward. (transformers grows its table; a program exported from there is bound to the
// lengths on that side of the table's end which the example was on.)
Tensor sinusoids_at(const Tensor& positions, const SymInt& length, const Tensor& table, std::optional<int64_t> padding);

}  // namespace calque
