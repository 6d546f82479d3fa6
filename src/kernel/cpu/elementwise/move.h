// Copies of many short rows, and transposing copies, in whole registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace calque::kernel {

// to[r * to_row + c] = from[c * from_column + r] for r < rows, c < columns; strides in bytes, elements of 2^k bytes
// contiguous along r in `from` and along c in `to`.
using TransposeFn = void (*)(const char* from, int64_t from_column, char* to, int64_t to_row, int64_t rows, int64_t columns);
TransposeFn transpose_fn(int64_t element_bytes);  // 1, 2, 4 or 8; null for others

// `rows` rows of `bytes` contiguous bytes each.
using CopyRowsFn = void (*)(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows, int64_t bytes);
void copy_rows(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows, int64_t bytes);

using Fill16Fn = void (*)(uint16_t* to, int64_t n, uint16_t value);
void fill16(uint16_t* to, int64_t n, uint16_t value);

// Whether the bits `ones` are all set in one of `rows` rows of n unsigned numbers of 2, 4 or 8 bytes: an exponent of infinity or
// NaN. `row` is the numbers from one row to the next.
bool any_all_ones(const void* numbers, int64_t rows, int64_t row, int64_t n, size_t bytes, uint64_t ones);

struct MoveTable {
  TransposeFn transpose[4];  // of 1, 2, 4 and 8 bytes
  CopyRowsFn copy_rows;
  Fill16Fn fill16;
  // of 2, 4 and 8 bytes
  bool (*any_all_ones[3])(const void* numbers, int64_t rows, int64_t row, int64_t n, uint64_t ones);
};

}  // namespace calque::kernel
