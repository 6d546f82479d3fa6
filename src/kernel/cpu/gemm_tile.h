// The register tile at the heart of matrix multiplication and attention, and the packing of its vector operand. For
// *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm_finish.h"
#include "kernel/cpu/vec.h"

namespace calque {
namespace {

// Register tile: tile_rows numbers broadcast against tile_vectors vectors, so that accumulators, one row of vectors and one
// broadcast fill the register file.
#if defined(__AVX512F__)
constexpr int tile_rows = 8, tile_vectors = 3;
#elif defined(__AVX2__)
constexpr int tile_rows = 6, tile_vectors = 2;
#else
constexpr int tile_rows = 4, tile_vectors = 2;
#endif

/// out[i, :] (+)= sum_p a[i * a_row + p * a_k] * b[p * b_k ...]: R rows, V vectors, sums in registers throughout.
template <class T, int R, int V>
CALQUE_INLINE void tile_body(int64_t k, const T* a, int64_t a_row, int64_t a_k, const T* b, int64_t b_k, T* out,
                             int64_t out_row, bool add) {
  constexpr int L = lanes<T>;
  Vec<T> acc[R][V] = {};
  for (int64_t p = 0; p < k; ++p, b += b_k) {
    Vec<T> bv[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) bv[j] = load(b + j * L);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vec<T> av = splat(a[i * a_row + p * a_k]);
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[i][j] = fma(av, bv[j], acc[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      T* const o = out + i * out_row + j * L;
      store(o, add ? load(o) + acc[i][j] : acc[i][j]);
    }
}

/// Rows along k in memory, against a packed panel.
template <class T, int R, int V>
void tile(int64_t k, const T* a, int64_t a_row, const T* b, T* out, int64_t out_row, bool add) {
  tile_body<T, R, V>(k, a, a_row, 1, b, V * lanes<T>, out, out_row, add);
}

template <class T>
using TileFunction = void (*)(int64_t, const T*, int64_t, const T*, T*, int64_t, bool);

template <class T, int V, int R = tile_rows>
TileFunction<T> tile_of_rows(int64_t rows) {
  if constexpr (R == 1)
    return tile<T, 1, V>;
  else
    return rows >= R ? tile<T, R, V> : tile_of_rows<T, V, R - 1>(rows);
}

template <class T>
TileFunction<T> tile_for(int64_t rows, int64_t vectors) {
  if constexpr (tile_vectors >= 3)
    if (vectors == 3) return tile_of_rows<T, 3>(rows);
  return vectors == 2 ? tile_of_rows<T, 2>(rows) : tile_of_rows<T, 1>(rows);
}

/// One panel: out[p * width + j] = cols[p, j] for j < count, 0 for count <= j < width.
template <class S, class T>
void pack_panel(int64_t k, int64_t count, int64_t width, const S* cols, int64_t cols_k, int64_t cols_col, T* out) {
  constexpr int L = lanes<T>;
  if (cols_col == 1) {
    for (int64_t p = 0; p < k; ++p, cols += cols_k, out += width) {
      int64_t j = 0;
      for (; j + L <= count; j += L) store(out + j, load_wide(cols + j));
      for (; j < count; ++j) out[j] = widen(cols[j]);
      for (; j < width; ++j) out[j] = 0;
    }
    return;
  }
  for (int64_t j = 0; j < width; j += L) {
    const int64_t here = min(L, count - j);
    const S* const from = cols + j * cols_col;
    int64_t p = 0;
    if (cols_k == 1 && here == L) {
      for (; p + L <= k; p += L) {
        Vec<T> v[L];
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) v[i] = load_wide(from + i * cols_col + p);
        transpose<T>(v);
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) store(out + (p + i) * width + j, v[i]);
      }
    }
    for (; p < k; ++p) {
      T* const to = out + p * width + j;
      for (int64_t i = 0; i < here; ++i) to[i] = widen(from[i * cols_col + p * cols_k]);
      for (int64_t i = here; i < L; ++i) to[i] = 0;
    }
  }
}

}  // namespace
}  // namespace calque
