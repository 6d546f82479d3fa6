// Copies of rows and transposing copies, compiled once per instruction set.
#include "kernel/cpu/elementwise/move.h"

#include <type_traits>
#include <utility>

#include "kernel/cpu/simd/vec.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

// A block is as many rows as a register has elements; a whole register of bytes would need more registers than there are.
template <class T>
constexpr int block_side = lanes<T> > 16 ? 16 : lanes<T>;
template <class T, int n>
struct RowOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};

// Elements of the one and of the other in turn, from `first` on.
template <int first, class Row, size_t... i>
CALQUE_INLINE Row interleaved(Row a, Row b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (i % 2 * sizeof...(i) + first + i / 2)...);
}

// Interleaving row i with row i + n/2, log2(n) times over, is the transposition.
template <class T, int n>
CALQUE_INLINE void transpose_block(const char* from, int64_t from_column, char* to, int64_t to_row) {
  using Row = typename RowOf<T, n>::type;
  constexpr std::make_index_sequence<n> each;
  Row rows[n];
#pragma GCC unroll 16
  for (int c = 0; c < n; ++c) std::memcpy(&rows[c], from + c * from_column, sizeof(Row));
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
    Row next[n];
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = interleaved<0>(rows[i], rows[i + n / 2], each);
      next[2 * i + 1] = interleaved<n / 2>(rows[i], rows[i + n / 2], each);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int r = 0; r < n; ++r) std::memcpy(to + r * to_row, &rows[r], sizeof(Row));
}

template <class T>
void transpose(const char* from, int64_t from_column, char* to, int64_t to_row, int64_t rows, int64_t columns) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  constexpr int64_t n = block_side<T>;
  constexpr int64_t stretch = 64 / item > n ? 64 / item : n;  // rows that share the lines of `from`
  const auto plain = [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r)
      for (int64_t c = c0; c < c1; ++c)
        std::memcpy(to + r * to_row + c * item, from + c * from_column + r * item, sizeof(T));
  };
  for (int64_t r0 = 0; r0 < rows; r0 += stretch) {
    const int64_t r1 = r0 + stretch < rows ? r0 + stretch : rows;
    int64_t c = 0;
    for (; c + n <= columns; c += n) {
      int64_t r = r0;
      for (; r + n <= r1; r += n)
        transpose_block<T, n>(from + c * from_column + r * item, from_column, to + r * to_row + c * item, to_row);
      plain(r, r1, c, c + n);
    }
    plain(r0, r1, c, columns);
  }
}

void copy_rows(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows, int64_t bytes) {
  // memcpy prepares too long for a head's or a token's few lines.
  const auto each = [&](auto one) {
    for (int64_t r = 0; r < rows; ++r) one(to + r * to_row, from + r * from_row);
  };
  const auto fixed = [](auto count) {
    return [](char* t, const char* f) {
#pragma GCC unroll 4
      for (int i = 0; i < decltype(count)::value; ++i) store(t + i * vector_bytes, load(f + i * vector_bytes));
    };
  };
  switch (bytes) {
    case vector_bytes: return each(fixed(std::integral_constant<int, 1>{}));
    case 2 * vector_bytes: return each(fixed(std::integral_constant<int, 2>{}));
    case 4 * vector_bytes: return each(fixed(std::integral_constant<int, 4>{}));
    default: break;
  }
  if (bytes > 2048) return each([=](char* t, const char* f) { std::memcpy(t, f, static_cast<size_t>(bytes)); });
  each([=](char* t, const char* f) {
    int64_t i = 0;
    for (; i + vector_bytes <= bytes; i += vector_bytes) store(t + i, load(f + i));
    for (; i + 8 <= bytes; i += 8) std::memcpy(t + i, f + i, 8);
    for (; i < bytes; ++i) t[i] = f[i];
  });
}

void fill16(uint16_t* to, int64_t n, uint16_t value) {
  const auto v = splat<uint16_t>(value);
  int64_t i = 0;
  for (; i + lanes<uint16_t> <= n; i += lanes<uint16_t>) store(to + i, v);
  for (; i < n; ++i) to[i] = value;
}

template <class U>
bool any_all_ones(const void* numbers, int64_t rows, int64_t row, int64_t n, uint64_t wide) {
  const U* x = static_cast<const U*>(numbers);
  const U ones = static_cast<U>(wide);
  const auto mask = splat<U>(ones);
  decltype(mask == mask) found = {};
  bool any = false;
  for (int64_t r = 0; r < rows; ++r, x += row) {
    int64_t i = 0;
    for (; i + lanes<U> <= n; i += lanes<U>) found |= (load(x + i) & mask) == mask;
    for (; i < n; ++i) any |= (x[i] & ones) == ones;
  }
  uint64_t words[vector_bytes / 8], all = 0;
  std::memcpy(words, &found, sizeof words);
  for (const uint64_t word : words) all |= word;
  return any || all != 0;
}

}  // namespace

extern const MoveTable move_table[];
const MoveTable move_table[] = {{{&transpose<uint8_t>, &transpose<uint16_t>, &transpose<uint32_t>, &transpose<uint64_t>},
                                 &copy_rows,
                                 &fill16,
                                 {&any_all_ones<uint16_t>, &any_all_ones<uint32_t>, &any_all_ones<uint64_t>}}};

}  // namespace calque::kernel::CALQUE_ISA
