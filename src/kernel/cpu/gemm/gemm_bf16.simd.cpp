// bfloat16 matrix multiplication by instructions that multiply pairs: on AMX tiles, or on vectors (AVX512_BF16). A tile of `rows`
// (16 rows of 32 numbers along k) is read where it lies; only `cols` is rearranged, into tiles of 16 pairs of k by 16 columns.
// Four 16 x 16 tiles of sums are worked on at a time.
#include "kernel/cpu/gemm/gemm_block.h"
#include "kernel/cpu/gemm/gemm_finish.h"
#include "kernel/cpu/gemm/gemm_patches.h"
#include "kernel/cpu/simd/amx.h"
#include "kernel/cpu/simd/vec.h"

#if defined(CALQUE_ISA_avx512)

namespace calque {
namespace {

constexpr int64_t pair_tile = 16, tile_k = 32, pair_tile_numbers = pair_tile * tile_k;
constexpr int64_t group = 2 * pair_tile;  // rows and columns that the accumulators cover
constexpr int64_t pair_k_block = 512, row_block = 256, most_cols = 512;
constexpr int64_t packed_limit = 2 << 20;  // numbers; what of `cols` is kept packed at a time

int64_t k_tiles(int64_t k) { return (k + tile_k - 1) / tile_k; }

int64_t cols_at_once(int64_t k) {
  const int64_t fit = packed_limit / (k_tiles(k) * tile_k + 1) / group * group;
  return fit < group ? group : min(fit, most_cols);
}

/// Up to 32 of k by 16 columns, somewhere.
struct Square {
  int64_t ks, js;
  const BFloat16* from;
  int64_t k_stride, col_stride;
};

/// As 16 rows of 16 pairs along k; zero outside.
void pack_tile(const Square& m, BFloat16* out) {
  if (m.k_stride == 1 && m.ks == tile_k) {
    Vec<float> v[16] = {};
    if (m.js == pair_tile) {
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) std::memcpy(&v[j], &m.from[j * m.col_stride].bits, sizeof v[j]);
    } else {
      for (int64_t j = 0; j < m.js; ++j) std::memcpy(&v[j], &m.from[j * m.col_stride].bits, sizeof v[j]);
    }
    transpose<float>(v);
#pragma GCC unroll 16
    for (int p = 0; p < 16; ++p) std::memcpy(&out[p * tile_k].bits, &v[p], sizeof v[p]);
    return;
  }
  if (m.col_stride == 1 && m.js == pair_tile) {
    for (int64_t p = 0; p < tile_k; p += 2) {
      VecU16Half even = {}, odd = {};
      if (p < m.ks) std::memcpy(&even, &m.from[p * m.k_stride].bits, sizeof even);
      if (p + 1 < m.ks) std::memcpy(&odd, &m.from[(p + 1) * m.k_stride].bits, sizeof odd);
      const Vec<uint32_t> pairs = __builtin_convertvector(even, Vec<uint32_t>) | __builtin_convertvector(odd, Vec<uint32_t>)
                                                                                     << 16;
      std::memcpy(&out[p * pair_tile].bits, &pairs, sizeof pairs);
    }
    return;
  }
  for (int64_t p = 0; p < tile_k; ++p)
    for (int64_t j = 0; j < pair_tile; ++j)
      out[p / 2 * tile_k + 2 * j + p % 2].bits =
          p < m.ks && j < m.js ? m.from[p * m.k_stride + j * m.col_stride].bits : uint16_t{0};
}

/// cols[k0 .. k0 + 32, j0 .. j0 + 16].
void pack_tile(const GemmPart<BFloat16>& g, int64_t k0, int64_t j0, BFloat16* out) {
  const int64_t ks = min(tile_k, g.k - k0), js = min(pair_tile, g.col_count - j0);
  if (g.patches != nullptr) {
    BFloat16 rows[pair_tile_numbers];
    pack_patches(*g.patches, k0, ks, g.first_patch + j0, js, pair_tile, rows);
    pack_tile({ks, pair_tile, rows, pair_tile, 1}, out);
    return;
  }
  pack_tile({ks, js, g.cols + k0 * g.cols_k + j0 * g.cols_col, g.cols_k, g.cols_col}, out);
}

/// Two tiles side by side, where columns lie beside each other: whole lines are read.
void pack_two_tiles(int64_t ks, const BFloat16* from, int64_t k_stride, BFloat16* left, BFloat16* right) {
  alignas(64) uint16_t pairs[2 * tile_k];  // column j of the even row, column j of the odd one
  for (int j = 0; j < 2 * tile_k; ++j) pairs[j] = static_cast<uint16_t>(j / 2 + j % 2 * tile_k);
  const __m512i left_pairs = _mm512_load_si512(pairs), right_pairs = _mm512_load_si512(pairs + tile_k);
  for (int64_t p = 0; p < tile_k; p += 2) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i even = p < ks ? _mm512_loadu_si512(from + p * k_stride) : zero;
    const __m512i odd = p + 1 < ks ? _mm512_loadu_si512(from + (p + 1) * k_stride) : zero;
    _mm512_storeu_si512(left + p * pair_tile, _mm512_permutex2var_epi16(even, left_pairs, odd));
    _mm512_storeu_si512(right + p * pair_tile, _mm512_permutex2var_epi16(even, right_pairs, odd));
  }
}

/// cols[k0 .. k0 + 32, j0 .. j0 + 32], of which there are so many; columns lie beside each other or are patches.
void pack_two_tiles(const GemmPart<BFloat16>& g, int64_t k0, int64_t j0, BFloat16* left, BFloat16* right) {
  const int64_t ks = min(tile_k, g.k - k0);
  if (g.patches == nullptr) return pack_two_tiles(ks, g.cols + k0 * g.cols_k + j0, g.cols_k, left, right);
  BFloat16 rows[2 * pair_tile_numbers];
  pack_patches(*g.patches, k0, ks, g.first_patch + j0, 2 * pair_tile, 2 * pair_tile, rows);
  pack_two_tiles(ks, rows, 2 * pair_tile, left, right);
}

/// cols[all of k, col .. col + cols] as columns of tiles.
[[gnu::flatten]] void pack_columns(const GemmPart<BFloat16>& g, int64_t col, int64_t cols, BFloat16* out) {
  const int64_t tiles_k = k_tiles(g.k), column_tile = tiles_k * pair_tile_numbers;
  const bool beside = g.patches != nullptr || g.cols_col == 1;
  for (int64_t j = 0; j < cols;) {
    const bool two = beside && cols - j >= 2 * pair_tile;
    BFloat16* const to = out + j / pair_tile * column_tile;
    for (int64_t t = 0; t < tiles_k; ++t) {
      if (two)
        pack_two_tiles(g, t * tile_k, col + j, to + t * pair_tile_numbers, to + column_tile + t * pair_tile_numbers);
      else
        pack_tile(g, t * tile_k, col + j, to + t * pair_tile_numbers);
    }
    j += two ? 2 * pair_tile : pair_tile;
  }
}

/// A group's rows for one block of k, zero padded, k contiguous.
void copy_rows(const GemmPart<BFloat16>& g, int64_t row, int64_t k0, int64_t k, BFloat16* out) {
  const int64_t rows = min(group, g.row_count - row), ks = min(k, g.k - k0);
  for (int64_t i = 0; i < group; ++i) {
    BFloat16* const to = out + i * k;
    const int64_t count = i < rows ? ks : 0;
    const BFloat16* const from = g.rows + (row + i) * g.rows_row + k0 * g.rows_k;
    if (g.rows_k == 1) {
      if (count > 0) std::memcpy(&to->bits, &from->bits, static_cast<size_t>(count) * sizeof *to);
    } else {
      for (int64_t p = 0; p < count; ++p) to[p].bits = from[p * g.rows_k].bits;
    }
    for (int64_t p = count; p < k; ++p) to[p].bits = 0;
  }
}

/// Where to ask for 8 lines in each quarter of a group of rows, for every tile of k. Four places at once are read faster than one.
struct Ahead {
  const BFloat16* from;
  int64_t quarter, line, step;  // numbers

  CALQUE_INLINE void ask(int64_t q) const {
    for (int64_t i = 0; i < group / 4; ++i) __builtin_prefetch(from + q * quarter + i * line, 0, 2);
  }
};

// What the loops below need of the instructions: a Scope in which they can be used, and
//   multiply       sums[32, 32 or 16] (+)= rows[32, k] * cols
//   multiply_few   the same without (+), asking for the rows to come
// `b_tile` is the way from one tile of 16 columns to the next.

struct AmxProducts {
  using Scope = Tiles;

  // The asm of the macros wants register numbers as literals.
  static void multiply(int64_t tiles_k, const BFloat16* a, int64_t a_row, const BFloat16* b, int64_t b_tile, bool two,
                       float* sums, int64_t sums_row, bool add) {
    const auto a_bytes = a_row * 2, c_bytes = sums_row * 4;
    float* const lower = sums + pair_tile * sums_row;
    if (add) {
      _tile_loadd(0, sums, c_bytes);
      _tile_loadd(2, lower, c_bytes);
      if (two) {
        _tile_loadd(1, sums + pair_tile, c_bytes);
        _tile_loadd(3, lower + pair_tile, c_bytes);
      }
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    const BFloat16* const a2 = a + pair_tile * a_row;
    if (two) {
      for (int64_t t = 0; t < tiles_k; ++t) {
        _tile_loadd(4, a + t * tile_k, a_bytes);
        _tile_loadd(6, b + t * pair_tile_numbers, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + b_tile + t * pair_tile_numbers, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a2 + t * tile_k, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    } else {
      for (int64_t t = 0; t < tiles_k; ++t) {
        _tile_loadd(4, a + t * tile_k, a_bytes);
        _tile_loadd(6, b + t * pair_tile_numbers, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a2 + t * tile_k, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
      }
    }
    _tile_stored(0, sums, c_bytes);
    _tile_stored(2, lower, c_bytes);
    if (two) {
      _tile_stored(1, sums + pair_tile, c_bytes);
      _tile_stored(3, lower + pair_tile, c_bytes);
    }
  }

  template <bool Two>
  static void multiply_few(int64_t tiles_k, const BFloat16* a, int64_t a_row, const BFloat16* b, int64_t b_tile, float* sums,
                           int64_t sums_row, Ahead ahead) {
    const auto a_bytes = a_row * 2, c_bytes = sums_row * 4;
    const BFloat16* const a2 = a + pair_tile * a_row;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t t = 0; t < tiles_k; ++t, ahead.from += ahead.step) {
      ahead.ask(0);
      ahead.ask(1);
      _tile_loadd(4, a + t * tile_k, a_bytes);
      _tile_loadd(6, b + t * pair_tile_numbers, 64);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (Two) {
        _tile_loadd(7, b + b_tile + t * pair_tile_numbers, 64);
        _tile_dpbf16ps(1, 4, 7);
      }
      ahead.ask(2);
      ahead.ask(3);
      _tile_loadd(5, a2 + t * tile_k, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (Two) _tile_dpbf16ps(3, 5, 7);
    }
    float* const lower = sums + pair_tile * sums_row;
    _tile_stored(0, sums, c_bytes);
    _tile_stored(2, lower, c_bytes);
    if constexpr (Two) {
      _tile_stored(1, sums + pair_tile, c_bytes);
      _tile_stored(3, lower + pair_tile, c_bytes);
    }
  }
};

struct VectorProducts {
  struct Scope {
    Scope() {}  // no aggregate: nothing is unused
  };
  static constexpr int64_t rows_at_once = 8;  // a first-level cache holds 8 lines that are a multiple of 4 KB apart

  static void multiply(int64_t tiles_k, const BFloat16* a, int64_t a_row, const BFloat16* b, int64_t b_tile, bool two,
                       float* sums, int64_t sums_row, bool add) {
    for (int64_t i = 0; i < group; i += rows_at_once) {
      const auto rows = two ? multiply_rows<true, false> : multiply_rows<false, false>;
      rows(tiles_k, a + i * a_row, a_row, b, b_tile, sums + i * sums_row, sums_row, add, {}, 0);
    }
  }

  template <bool Two>
  static void multiply_few(int64_t tiles_k, const BFloat16* a, int64_t a_row, const BFloat16* b, int64_t b_tile, float* sums,
                           int64_t sums_row, const Ahead& ahead) {
    for (int64_t i = 0; i < group; i += rows_at_once)
      multiply_rows<Two, true>(tiles_k, a + i * a_row, a_row, b, b_tile, sums + i * sums_row, sums_row, false, ahead,
                               i / rows_at_once);
  }

 private:
  // c plus the products of pairs of numbers. clang 16 never ends when a splat becomes a vector of its own bfloat16 type.
  __attribute__((target("avx512bf16"), always_inline)) static __m512 add_products(__m512 c, __m512i a, __m512i b) {
#if defined(__clang__)
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#else
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#endif
  }

  template <bool Two, bool Asks>
  __attribute__((target("avx512bf16"))) static void multiply_rows(int64_t tiles_k, const BFloat16* a, int64_t a_row,
                                                                  const BFloat16* b, int64_t b_tile, float* sums,
                                                                  int64_t sums_row, bool add, Ahead ahead, int64_t quarter) {
    constexpr int width = Two ? 2 : 1;
    __m512 c[rows_at_once][width];
#pragma GCC unroll 8
    for (int64_t i = 0; i < rows_at_once; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < width; ++j)
        c[i][j] = add ? _mm512_loadu_ps(sums + i * sums_row + j * pair_tile) : _mm512_setzero_ps();
    for (int64_t t = 0; t < tiles_k; ++t, a += tile_k, b += pair_tile_numbers, ahead.from += ahead.step) {
      if constexpr (Asks) ahead.ask(quarter);
      for (int64_t p = 0; p < tile_k; p += 2) {
        __m512i column[width];
#pragma GCC unroll 2
        for (int j = 0; j < width; ++j) column[j] = _mm512_loadu_si512(b + j * b_tile + p * pair_tile);
#pragma GCC unroll 8
        for (int64_t i = 0; i < rows_at_once; ++i) {
          int pair;
          std::memcpy(&pair, &a[i * a_row + p].bits, sizeof pair);
          const __m512i row = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
          for (int j = 0; j < width; ++j) c[i][j] = add_products(c[i][j], row, column[j]);
        }
      }
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < rows_at_once; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < width; ++j) _mm512_storeu_ps(sums + i * sums_row + j * pair_tile, c[i][j]);
  }
};

/// All columns in one group: the rows, most likely weights in far memory, are read once and in order, whole rows of them. Returns
/// how many were done; what is left does not fill a group.
template <class Products>
int64_t few_columns(const GemmPart<BFloat16>& g, const BFloat16* packed, float* sums) {
  const int64_t tiles_k = g.k / tile_k, sums_row = round_up(g.col_count, pair_tile);
  const bool dense = g.rows_row == g.k;
  int64_t row = 0;
  for (; row + group <= g.row_count; row += group) {
    const BFloat16* const a = g.rows + row * g.rows_row;
    const Ahead ahead = {a + group * g.rows_row, group / 4 * g.rows_row, dense ? tile_k : g.rows_row,
                         dense ? group / 4 * tile_k : tile_k};
    const auto multiply =
        g.col_count > pair_tile ? Products::template multiply_few<true> : Products::template multiply_few<false>;
    multiply(tiles_k, a, g.rows_row, packed, tiles_k * pair_tile_numbers, sums, sums_row, ahead);
    finish(g, row, group, 0, g.col_count, sums, sums_row);
  }
  return row;
}

int64_t scratch_size(int64_t k) {
  return cols_at_once(k) * k_tiles(k) * tile_k * 2 + row_block * most_cols * 4 + group * pair_k_block * 2;
}

template <class Products>
void pair_block(const GemmPart<BFloat16>& g, void* scratch) {
  const int64_t tiles_k = k_tiles(g.k), cols_block = cols_at_once(g.k);
  float* const sums = static_cast<float*>(scratch);
  BFloat16* const copies = reinterpret_cast<BFloat16*>(sums + row_block * most_cols);
  BFloat16* const packed = copies + group * pair_k_block;
  const int64_t column_tile = tiles_k * pair_tile_numbers;
  const typename Products::Scope scope;
  for (int64_t col = 0; col < g.col_count; col += cols_block) {
    const int64_t cols = min(cols_block, g.col_count - col);
    const int64_t sums_row = round_up(cols, pair_tile);
    pack_columns(g, col, cols, packed);
    const bool few = g.col_count <= group && g.rows_k == 1 && g.k % tile_k == 0;
    for (int64_t row = few ? few_columns<Products>(g, packed, sums) : 0; row < g.row_count; row += row_block) {
      const int64_t rows = min(row_block, g.row_count - row);
      for (int64_t p = 0; p < g.k; p += pair_k_block) {
        const int64_t k = min(pair_k_block, tiles_k * tile_k - p);
        for (int64_t i = 0; i < rows; i += group) {
          const BFloat16* a = g.rows + (row + i) * g.rows_row + p;
          int64_t a_row = g.rows_row;
          if (g.rows_k != 1 || rows - i < group || p + k > g.k) {
            copy_rows(g, row + i, p, k, copies);
            a = copies;
            a_row = k;
          }
          for (int64_t j = 0; j < cols; j += group) {
            if (rows - i >= 2 * group)
              prefetch_rows(group, k * j / cols, k * min(cols, j + group) / cols, a + group * g.rows_row, g.rows_row,
                            a == copies ? 0 : 1);
            Products::multiply(k / tile_k, a, a_row, packed + j / pair_tile * column_tile + p / tile_k * pair_tile_numbers,
                               column_tile, sums_row - j >= group, sums + i * sums_row + j, sums_row, p != 0);
          }
        }
      }
      finish(g, row, rows, col, cols, sums, sums_row);
    }
  }
}

}  // namespace

namespace avx512 {
const PairKernels gemm_amx = {pair_block<AmxProducts>, scratch_size};
const PairKernels gemm_avx512_bf16 = {pair_block<VectorProducts>, scratch_size};
}  // namespace avx512

}  // namespace calque

#endif
