// Reads the elements of any strided tensor in row-major order, in pieces, without making a contiguous copy of the whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "calque/base/small_vector.h"
#include "calque/op/tensor.h"

namespace calque {

class RowMajorReader {
 public:
  explicit RowMajorReader(const Tensor& tensor);  // keeps the tensor alive

  // The next elements: a pointer to at least min(count, remaining()) of them, either into the tensor or into `buffer`,
  // which holds `count` elements. Advances by that many.
  const void* next(void* buffer, size_t count);
  size_t remaining() const { return remaining_; }

 private:
  Tensor tensor_;
  const std::byte* data_;
  size_t item_;
  size_t remaining_;
  bool contiguous_;
  size_t position_ = 0;  // of a contiguous tensor
  SmallVector<int64_t, 6> sizes_, strides_, index_;
};

}  // namespace calque
