// What the matrix multiplication kernels share, for *.simd.cpp files only: the way from sums to the output, and prefetching.
#pragma once

#include "kernel/cpu/gemm/gemm_block.h"
#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

constexpr int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

template <class S>
CALQUE_INLINE void prefetch_rows(int64_t count, int64_t first, int64_t last, const S* rows, int64_t rows_row,
                                 int64_t rows_k) {
  if (rows_k != 1) return;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t p = first; p < last; p += 64 / static_cast<int64_t>(sizeof(S)))
      __builtin_prefetch(rows + i * rows_row + p, 0, 2);
}

template <class S>
CALQUE_INLINE S finish_one(const GemmPart<S>& g, int64_t i, int64_t j, Accumulate<S> sum) {
  Accumulate<S> x = g.alpha * sum;
  if (g.beta != 0) x += g.beta * widen(g.out[i * g.out_row + j * g.out_col]);
  if (g.bias != nullptr) x += widen(g.bias[i * g.bias_row + j * g.bias_col]);
  if constexpr (sizeof(S) == sizeof(Accumulate<S>))
    return x;
  else
    return narrow<S>(x);
}

/// The block's sums go out: scaled, with bias and the old output, rounded once.
template <class S, class T>
void finish(const GemmPart<S>& g, int64_t row, int64_t rows, int64_t col, int64_t cols, const T* sums, int64_t sums_row) {
  constexpr int L = lanes<T>;
  const Vec<T> alpha = splat(g.alpha), beta = splat(g.beta);
  const bool has_beta = g.beta != 0;
  if (g.out_col == 1 && (g.bias == nullptr || g.bias_col == 1 || g.bias_col == 0)) {
    for (int64_t i = 0; i < rows; ++i) {
      S* const out = g.out + (row + i) * g.out_row + col;
      const S* const bias = g.bias == nullptr ? nullptr : g.bias + (row + i) * g.bias_row + col * g.bias_col;
      const Vec<T> row_bias = bias != nullptr && g.bias_col == 0 ? splat<T>(widen(*bias)) : Vec<T>{};
      int64_t j = 0;
      for (; j + L <= cols; j += L) {
        Vec<T> x = alpha * load(sums + i * sums_row + j);
        if (has_beta) x += beta * load_wide(out + j);
        if (bias != nullptr) x += g.bias_col == 0 ? row_bias : load_wide(bias + j);
        store_narrow(out + j, x);
      }
      for (; j < cols; ++j) out[j] = finish_one(g, row + i, col + j, sums[i * sums_row + j]);
    }
    return;
  }
  int64_t i = 0;
  if (g.out_row == 1 && (g.bias == nullptr || g.bias_row == 1 || g.bias_row == 0)) {
    for (; i + L <= rows; i += L) {
      int64_t j = 0;
      for (; j + L <= cols; j += L) {
        Vec<T> v[L];
#pragma GCC unroll 16
        for (int r = 0; r < L; ++r) v[r] = load(sums + (i + r) * sums_row + j);
        transpose<T>(v);
#pragma GCC unroll 16
        for (int c = 0; c < L; ++c) {
          S* const out = g.out + (row + i) + (col + j + c) * g.out_col;
          Vec<T> x = alpha * v[c];
          if (has_beta) x += beta * load_wide(out);
          if (g.bias != nullptr) {
            const S* const bias = g.bias + (row + i) * g.bias_row + (col + j + c) * g.bias_col;
            x += g.bias_row == 0 ? splat<T>(widen(*bias)) : load_wide(bias);
          }
          store_narrow(out, x);
        }
      }
      for (; j < cols; ++j)
        for (int64_t r = i; r < i + L; ++r)
          g.out[(row + r) + (col + j) * g.out_col] = finish_one(g, row + r, col + j, sums[r * sums_row + j]);
    }
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      g.out[(row + i) * g.out_row + (col + j) * g.out_col] = finish_one(g, row + i, col + j, sums[i * sums_row + j]);
}

}  // namespace
}  // namespace calque
