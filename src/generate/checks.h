// What the makers of logits processors share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

// -sum p log p of each row of logits, [batch].
Tensor entropy(const Tensor& logits);

// The rows of a two-dimensional tensor of int64.
class IdRows {
 public:
  explicit IdRows(const Tensor& ids);  // UserError for any other tensor
  size_t size() const { return rows_; }
  std::span<const int64_t> operator[](size_t row) const { return {data_ + row * length_, length_}; }

 private:
  Tensor ids_;
  const int64_t* data_;
  size_t rows_, length_;
};

}  // namespace calque
