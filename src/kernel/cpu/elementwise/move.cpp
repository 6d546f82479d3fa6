#include "kernel/cpu/elementwise/move.h"

#include <bit>

#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(MoveTable, move_table)

TransposeFn transpose_fn(int64_t element_bytes) {
  const auto bytes = static_cast<uint64_t>(element_bytes);
  return std::has_single_bit(bytes) && bytes <= 8 ? move_table()->transpose[std::countr_zero(bytes)] : nullptr;
}

void copy_rows(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows, int64_t bytes) {
  move_table()->copy_rows(from, from_row, to, to_row, rows, bytes);
}

bool any_all_ones(const void* numbers, int64_t rows, int64_t row, int64_t n, size_t bytes, uint64_t ones) {
  return move_table()->any_all_ones[std::countr_zero(bytes) - 1](numbers, rows, row, n, ones);
}
void fill16(uint16_t* to, int64_t n, uint16_t value) { move_table()->fill16(to, n, value); }

}  // namespace calque::kernel
