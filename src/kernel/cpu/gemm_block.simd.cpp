#include "kernel/cpu/gemm_block.h"

#include "kernel/cpu/gemm_finish.h"
#include "kernel/cpu/gemm_patches.h"
#include "kernel/cpu/gemm_tile.h"
#include "kernel/cpu/depthwise.h"
#include "kernel/cpu/vec.h"

namespace calque {
namespace {

// Blocks: a panel block of k_block x col_block and the accumulators of row_block x col_block stay in the second-level cache
// together. k_block also bounds how long a chain of additions gets, which keeps the rounding error near that of others.
template <class T>
constexpr int64_t k_block = sizeof(T) == 4 ? 384 : 256;
template <class T>
constexpr int64_t col_block = lanes<T> * tile_vectors * (64 / vector_bytes) * 4;
constexpr int64_t row_block = 768;
// With few rows there is little to gain from the panels' reuse, so blocks get wide and follow the memory's order.
constexpr int64_t few_rows = 32;
template <class T>
constexpr int64_t wide_k_block = k_block<T> / 4;
template <class T>
constexpr int64_t wide_col_block = col_block<T> * 4;

/// rows[i, p] for a tile's rows into out[i * k + p].
template <class S, class T>
void copy_rows(int64_t count, int64_t k, const S* rows, int64_t rows_row, int64_t rows_k, T* out) {
  constexpr int L = lanes<T>;
  if (rows_k == 1) {
    for (int64_t i = 0; i < count; ++i, rows += rows_row, out += k) {
      int64_t p = 0;
      for (; p + L <= k; p += L) store(out + p, load_wide(rows + p));
      for (; p < k; ++p) out[p] = widen(rows[p]);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < count; ++i) out[i * k + p] = widen(rows[i * rows_row + p * rows_k]);
}

template <class S, class T>
void pack_cols(const GemmPart<S>& g, int64_t p, int64_t k, int64_t col, int64_t count, int64_t width, T* out) {
  if (g.patches != nullptr)
    pack_patches(*g.patches, p, k, g.first_patch + col, count, width, out);
  else
    pack_panel(k, count, width, g.cols + p * g.cols_k + col * g.cols_col, g.cols_k, g.cols_col, out);
}

template <class S>
void block(const GemmPart<S>& g, void* scratch) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  constexpr int64_t panel = L * tile_vectors;
  const bool few = g.row_count <= few_rows;
  const int64_t kb = few ? wide_k_block<T> : k_block<T>;
  const int64_t cb = few ? wide_col_block<T> : col_block<T>;
  T* const sums = static_cast<T*>(scratch);
  T* const panels = sums + row_block * col_block<T>;
  T* const copies = panels + k_block<T> * col_block<T>;
  const bool direct = sizeof(S) == sizeof(T) && g.rows_k == 1;
  // Convolutions elsewhere add up short stretches, a few channels each; longer ones would round worse than theirs.
  const int64_t chain = g.patches != nullptr ? 96 : kb;

  for (int64_t col = 0; col < g.col_count; col += cb) {
    const int64_t cols = min(cb, g.col_count - col);
    const int64_t sums_row = round_up(cols, L);
    for (int64_t row = 0; row < g.row_count; row += row_block) {
      const int64_t rows = min(row_block, g.row_count - row);
      if (g.k == 0) std::memset(sums, 0, static_cast<size_t>(rows * sums_row) * sizeof(T));
      for (int64_t p = 0; p < g.k; p += kb) {
        const int64_t k = min(kb, g.k - p);
        for (int64_t j = 0; j < cols; j += panel)
          pack_cols(g, p, k, col + j, min(panel, cols - j), min(panel, sums_row - j), panels + j * k);
        for (int64_t i = 0; i < rows; i += tile_rows) {
          const int64_t here = min(tile_rows, rows - i);
          const S* const from = g.rows + (row + i) * g.rows_row + p * g.rows_k;
          const T* a = copies;
          int64_t a_row = k;
          if (direct) {
            a = reinterpret_cast<const T*>(from);
            a_row = g.rows_row;
          } else {
            copy_rows(here, k, from, g.rows_row, g.rows_k, copies);
          }
          for (int64_t j = 0; j < cols; j += panel) {
            // The next tile's rows come from far memory: ask for a share of them before each panel.
            if (i + here < rows)
              prefetch_rows(min(tile_rows, rows - i - here), k * j / cols, k * min(cols, j + panel) / cols,
                            from + here * g.rows_row, g.rows_row, g.rows_k);
            const int64_t vectors = min(tile_vectors, (sums_row - j) / L);
            const auto multiply = tile_for<T>(here, vectors);
            for (int64_t q = 0; q < k; q += chain)
              multiply(min(chain, k - q), a + q, a_row, panels + j * k + q * vectors * L, sums + i * sums_row + j, sums_row,
                       p + q != 0);
          }
        }
      }
      finish(g, row, rows, col, cols, sums, sums_row);
    }
  }
}

// The dot product kernel. bfloat16 weights are widened two at a time from 32-bit words, so the vector operand is stored with
// the even positions of each stretch of 2 * lanes first and the odd ones after.
template <class S>
constexpr bool splits_pairs = false;
template <>
constexpr bool splits_pairs<BFloat16> = true;

template <class S>
void pack_dot(const GemmPart<S>& g, void* packed_cols) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  const int64_t stride = dot_stride(g.k);
  for (int64_t j = 0; j < g.col_count; ++j) {
    T* const out = static_cast<T*>(packed_cols) + j * stride;
    const S* const from = g.cols + j * g.cols_col;
    int64_t p = 0;
    if constexpr (splits_pairs<S>) {
      for (; p + 2 * L <= g.k; p += 2 * L)
        for (int i = 0; i < L; ++i) {
          out[p + i] = widen(from[(p + 2 * i) * g.cols_k]);
          out[p + L + i] = widen(from[(p + 2 * i + 1) * g.cols_k]);
        }
    }
    for (; p < g.k; ++p) out[p] = widen(from[p * g.cols_k]);
  }
}

/// R rows of weights against C packed columns.
template <class S, int R, int C>
void dot_tile(const GemmPart<S>& g, const Accumulate<S>* x, int64_t row, int64_t col) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  const int64_t stride = dot_stride(g.k);
  const S* const w = g.rows + row * g.rows_row;
  x += col * stride;
  // Two sets of accumulators where one would not keep the multipliers busy.
  constexpr int sets = splits_pairs<S> || R * C < 8 ? 2 : 1;
  constexpr int step = sets * L;
  Vec<T> acc[sets][R][C] = {};
  int64_t p = 0;
  for (; p + step <= g.k; p += step) {
    Vec<T> xv[sets][C];
#pragma GCC unroll 2
    for (int s = 0; s < sets; ++s)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) xv[s][c] = load(x + c * stride + p + s * L);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Vec<T> wv[sets];
      if constexpr (splits_pairs<S>) {
        Vec<uint32_t> u;
        std::memcpy(&u, w + r * g.rows_row + p, sizeof u);
        wv[0] = reinterpret_cast<Vec<T>>(u << 16);
        wv[1] = reinterpret_cast<Vec<T>>(u & 0xffff0000U);
      } else {
#pragma GCC unroll 2
        for (int s = 0; s < sets; ++s) wv[s] = load_wide(w + r * g.rows_row + p + s * L);
      }
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
#pragma GCC unroll 2
        for (int s = 0; s < sets; ++s) {
          Vec<T>& to = acc[splits_pairs<S> && R * C > 8 ? 0 : s][r][c];
          to = fma(wv[s], xv[s][c], to);
        }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      Vec<T> total = acc[0][r][c];
      if constexpr (sets == 2) total += acc[1][r][c];
      T sum = sum_lanes<T>(total);
      for (int64_t q = p; q < g.k; ++q) sum += widen(w[r * g.rows_row + q]) * x[c * stride + q];
      g.out[(row + r) * g.out_row + (col + c) * g.out_col] = finish_one(g, row + r, col + c, sum);
    }
}

constexpr int dot_rows = tile_vectors, dot_cols = tile_rows;

template <class S, int R, int C>
void dot_tiles(const GemmPart<S>& g, const Accumulate<S>* x, int64_t col, int64_t cols) {
  if constexpr (C > 1) {
    if (cols < C) return dot_tiles<S, (C - 1 <= 2 ? 4 : R), C - 1>(g, x, col, cols);
  }
  int64_t row = 0;
  for (; row + R <= g.row_count; row += R) dot_tile<S, R, C>(g, x, row, col);
  for (; row < g.row_count; ++row) dot_tile<S, 1, C>(g, x, row, col);
}

template <class S>
void dot(const GemmPart<S>& g, const void* packed_cols) {
  const auto* x = static_cast<const Accumulate<S>*>(packed_cols);
  // Rows in stretches that stay in cache while every group of columns goes over them.
  constexpr int64_t stretch = 12;
  if (g.col_count <= dot_cols) return dot_tiles<S, dot_rows, dot_cols>(g, x, 0, g.col_count);
  GemmPart<S> part = g;
  for (int64_t row = 0; row < g.row_count; row += stretch) {
    part.row_count = min(stretch, g.row_count - row);
    for (int64_t col = 0; col < g.col_count; col += dot_cols)
      dot_tiles<S, dot_rows, dot_cols>(part, x, col, min(dot_cols, g.col_count - col));
    part.rows += stretch * g.rows_row;
    part.out += stretch * g.out_row;
    if (part.bias != nullptr) part.bias += stretch * g.bias_row;
  }
}

// The streaming kernel: a few rows of the matrix `cols` at a time, added into the accumulators of each output row.
constexpr int stream_tile_rows = 4;

template <class S, int R, int U>
void stream_rows(const GemmPart<S>& g, int64_t row, int64_t p, Accumulate<S>* sums) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  T a[R][U];
  Vec<T> av[R][U];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      a[r][u] = widen(g.rows[(row + r) * g.rows_row + (p + u) * g.rows_k]);
      av[r][u] = splat(a[r][u]);
    }
  const S* const b = g.cols + p * g.cols_k;
  T* const out = sums + row * g.col_count;
  int64_t j = 0;
  for (; j + L <= g.col_count; j += L) {
    Vec<T> total[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) total[r] = load(out + r * g.col_count + j);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      const Vec<T> bv = load_wide(b + u * g.cols_k + j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) total[r] = fma(av[r][u], bv, total[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store(out + r * g.col_count + j, total[r]);
  }
  for (; j < g.col_count; ++j)
    for (int u = 0; u < U; ++u)
      for (int r = 0; r < R; ++r) out[r * g.col_count + j] += a[r][u] * widen(b[u * g.cols_k + j]);
}

template <class S, int R>
void stream_step(const GemmPart<S>& g, int64_t row, int64_t p, int64_t count, Accumulate<S>* sums) {
  constexpr int U = 4;
  if (count == U) return stream_rows<S, R, U>(g, row, p, sums);
  for (int64_t i = 0; i < count; ++i) stream_rows<S, R, 1>(g, row, p + i, sums);
}

template <class S>
void stream(const GemmPart<S>& g, void* scratch) {
  using T = Accumulate<S>;
  T* const sums = static_cast<T*>(scratch);
  std::memset(sums, 0, static_cast<size_t>(g.row_count * g.col_count) * sizeof(T));
  for (int64_t p = 0; p < g.k; p += 4) {
    const int64_t count = min(4, g.k - p);
    for (int64_t row = 0; row < g.row_count; row += stream_tile_rows) {
      switch (min(stream_tile_rows, g.row_count - row)) {
        case 1: stream_step<S, 1>(g, row, p, count, sums); break;
        case 2: stream_step<S, 2>(g, row, p, count, sums); break;
        case 3: stream_step<S, 3>(g, row, p, count, sums); break;
        default: stream_step<S, 4>(g, row, p, count, sums); break;
      }
    }
  }
  finish(g, 0, g.row_count, 0, g.col_count, sums, g.col_count);
}

template <class S>
constexpr GemmKernels<S> kernels = [] {
  using T = Accumulate<S>;
  constexpr int64_t numbers =
      (row_block + k_block<T>)*col_block<T> + round_up(tile_rows * k_block<T>, 64);
  return GemmKernels<S>{block<S>, numbers * static_cast<int64_t>(sizeof(T)), pack_dot<S>, dot<S>, 3 * dot_cols,
                        stream<S>, 2 * stream_tile_rows, depthwise<S>, depthwise_numbers<S>};
}();

static_assert(few_rows * wide_col_block<float> <= row_block * col_block<float>);

}  // namespace

namespace CALQUE_ISA {
const GemmKernels<float> gemm_float = kernels<float>;
const GemmKernels<double> gemm_double = kernels<double>;
const GemmKernels<BFloat16> gemm_bfloat16 = kernels<BFloat16>;
const GemmKernels<Half> gemm_half = kernels<Half>;
}  // namespace CALQUE_ISA

}  // namespace calque
