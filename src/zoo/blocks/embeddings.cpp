#include "embeddings.h"

#include <cmath>

#include "calque/nn/functional.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"

namespace calque {

namespace {

// An error of the last digit in a frequency grows with the position, so each is rounded once, from double precision.
Tensor sinusoids_of(const Tensor& positions, int64_t size, std::optional<int64_t> padding) {
  const int64_t half = size / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const Tensor exponents = arange(half, DType::int64).to(DType::float32) * -step;
  const Tensor frequencies = exp(exponents.to(DType::float64)).to(DType::float32);
  const Tensor angles = positions.to(DType::float32).unsqueeze(-1) * frequencies;
  Tensor rows = cat({sin(angles), cos(angles)}, -1);
  if (size % 2 == 1) rows = constant_pad_nd(rows, {0, 1});
  return padding ? rows.masked_fill(eq(positions, *padding).unsqueeze(-1), 0) : rows;
}

}  // namespace

ScaledWordEmbedding::ScaledWordEmbedding(std::string name, int64_t words, int64_t size, std::optional<int64_t> padding,
                                         double scale)
    : NamedModule(std::move(name), words, size, EmbeddingOptions{.padding_idx = padding}), scale(scale) {}

Tensor ScaledWordEmbedding::scale_of_embeddings() const { return full({}, Scalar(scale), weight->dtype()); }

Tensor ScaledWordEmbedding::forward(const Tensor& input_ids) {
  const Tensor found = Embedding::forward(input_ids);
  return scale == 1 ? found : found * scale;
}

OffsetPositions::OffsetPositions(const char* name, int64_t positions, int64_t size)
    : NamedModule(name, positions + offset, size) {}

Tensor OffsetPositions::forward(const Tensor& position_ids) { return Embedding::forward(position_ids + offset); }

Tensor sinusoidal_table(int64_t rows, int64_t size, std::optional<int64_t> padding) {
  return sinusoids_of(arange(rows, DType::int64), size, padding);
}

Tensor sinusoids_at(const Tensor& positions, const SymInt& length, const Tensor& table, std::optional<int64_t> padding) {
  if (length.is_symbolic() || length.as_int() > table.size(0))
    return sinusoids_of(positions, table.size(1), padding).to(table.dtype());
  return functional::embedding(positions, table);
}

}  // namespace calque
