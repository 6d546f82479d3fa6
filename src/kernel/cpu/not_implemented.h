// The error of a kernel that has no form for a dtype, in PyTorch's words.
#pragma once

#include <string_view>

#include "calque/tensor/dtype.h"

namespace calque::kernel {

// "\"name\" not implemented for 'dtype'", as an unsupported operator.
[[noreturn]] void not_implemented(std::string_view kernel, DType dtype);

// The row for a floating dtype of a table in the order float32, float64, bfloat16, float16.
template <class Row>
const Row& float_row(const Row* table, DType d, std::string_view kernel) {
  switch (d) {
    case DType::float32: return table[0];
    case DType::float64: return table[1];
    case DType::bfloat16: return table[2];
    case DType::float16: return table[3];
    default: not_implemented(kernel, d);
  }
}

}  // namespace calque::kernel
