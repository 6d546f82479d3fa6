#include "embeddings.h"

#include <cmath>

#include "calque/op/ops.h"

namespace calque {

ScaledWordEmbedding::ScaledWordEmbedding(std::string name, int64_t words, int64_t size, std::optional<int64_t> padding,
                                         double scale)
    : Typed(words, size, EmbeddingOptions{.padding_idx = padding}), name(std::move(name)), scale(scale) {}

Tensor ScaledWordEmbedding::forward(const Tensor& input_ids) {
  const Tensor found = Embedding::forward(input_ids);
  return scale == 1 ? found : found * scale;
}

OffsetPositions::OffsetPositions(const char* name, int64_t positions, int64_t size)
    : Typed(positions + offset, size), name(name) {}

Tensor OffsetPositions::forward(const Tensor& position_ids) { return Embedding::forward(position_ids + offset); }

Tensor sinusoidal_table(int64_t rows, int64_t size, std::optional<int64_t> padding) {
  const int64_t half = size / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const Tensor frequencies = exp(arange(half, DType::int64).to(DType::float32) * -step);
  const Tensor angles = arange(rows, DType::int64).to(DType::float32).unsqueeze(1) * frequencies.unsqueeze(0);
  Tensor table = cat({sin(angles), cos(angles)}, 1);
  if (size % 2 == 1) table = cat({table, zeros({rows, 1})}, 1);
  if (padding) table.select(0, *padding).zero_();
  return table;
}

}  // namespace calque
