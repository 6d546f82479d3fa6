// The error of a kernel that has no form for a dtype, in PyTorch's words.
#pragma once

#include <iterator>
#include <string_view>

#include "calque/tensor/dtype.h"

namespace calque::kernel {

// "\"name\" not implemented for 'dtype'", as an unsupported operator.
[[noreturn]] void not_implemented(std::string_view kernel, DType dtype);

// The row for a floating dtype of a table in the order float32, float64, bfloat16, float16.
template <class Row>
const Row& float_row(const Row* table, DType d, std::string_view kernel) {
  constexpr DType order[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
  for (size_t i = 0; i < std::size(order); ++i)
    if (order[i] == d) return table[i];
  not_implemented(kernel, d);
}

}  // namespace calque::kernel
