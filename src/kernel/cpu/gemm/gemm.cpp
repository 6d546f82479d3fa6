#include "kernel/cpu/gemm/gemm.h"

#include <algorithm>
#include <type_traits>

#include "calque/base/thread.h"
#include "kernel/cpu/gemm/gemm_parts.h"
#include "kernel/cpu/scratch.h"
#include "kernel/cpu/simd/isa.h"

namespace calque {
namespace {

template <class T>
int64_t batch_count(const Gemm<T>& g) {
  int64_t count = 1;
  for (int64_t d = 0; d < g.batch_dims; ++d) count *= g.batch_sizes[d];
  return count;
}

/// The problem of one batch index.
template <class T>
Gemm<T> batch_item(const Gemm<T>& g, int64_t index) {
  Gemm<T> item = g;
  item.batch_dims = 0;
  for (int64_t d = g.batch_dims - 1; d >= 0; --d) {
    const int64_t i = index % g.batch_sizes[d];
    index /= g.batch_sizes[d];
    item.a += i * g.a_batch[d];
    item.b += i * g.b_batch[d];
    item.c += i * g.c_batch[d];
  }
  return item;
}

/// `swapped` computes the transpose: its rows are the columns of b.
template <class S>
GemmPart<S> whole(const Gemm<S>& g, bool swapped) {
  using T = Accumulate<S>;
  const auto alpha = static_cast<T>(g.alpha), beta = static_cast<T>(g.beta);
  if (swapped)
    return {g.n, g.m,     g.k,     g.b,    g.b_col,       g.b_row, g.a,   g.a_col, g.a_row,
            g.c, g.c_col, g.c_row, g.bias, g.bias_stride, 0,       alpha, beta};
  return {g.m, g.n,     g.k,     g.a,    g.a_row, g.a_col,       g.b,   g.b_row, g.b_col,
          g.c, g.c_row, g.c_col, g.bias, 0,       g.bias_stride, alpha, beta};
}

/// Few columns against rows that lie along k: every row is read once, in place.
template <class S>
void run_dot(const Gemm<S>& g, bool swapped) {
  using T = Accumulate<S>;
  const GemmKernels<S>& kernel = gemm_kernels<S>();
  const GemmPart<S> first = whole(g, swapped);
  const int64_t batch = batch_count(g), stride = dot_stride(g.k) * first.col_count;
  T* const packed = scratch<T>(Scratch::packed, static_cast<size_t>(batch * stride));
  for (int64_t i = 0; i < batch; ++i) kernel.pack_dot(whole(batch_item(g, i), swapped), packed + i * stride);
  parallel_pieces(batch, first.row_count, 1, g.k * first.col_count, [&](int64_t item, int64_t begin, int64_t end) {
    kernel.dot(rows_of(whole(batch_item(g, item), swapped), begin, end), packed + item * stride);
  });
}

/// One row against a matrix whose rows are short: each thread takes whole rows of the matrix, and the threads' sums are added.
/// Strips of less than a page are read at two thirds of the speed.
template <class S>
bool run_stream_by_rows(const GemmPart<S>& all) {
  if constexpr (sizeof(S) == sizeof(Accumulate<S>)) {
    constexpr int64_t page = 4096 / sizeof(S);
    const int64_t grain = std::max<int64_t>(1, work_per_thread / all.col_count);
    const int64_t chunks = parallel_chunks(all.k, grain);
    if (all.row_count != 1 || chunks == 1 || all.col_count >= page * chunks) return false;
    const GemmKernels<S>& kernel = gemm_kernels<S>();
    S* const sums = scratch<S>(Scratch::packed, static_cast<size_t>(chunks * all.col_count));
    parallel_for(0, all.k, grain, [&](int64_t begin, int64_t end) {
      GemmPart<S> part = all;
      part.k = end - begin;
      part.rows += begin * all.rows_k;
      part.cols += begin * all.cols_k;
      part.out = sums + (begin * chunks + all.k - 1) / all.k * all.col_count;  // by the chunk's number
      part.out_col = 1;
      part.bias = nullptr;
      part.alpha = 1;
      part.beta = 0;
      kernel.stream(part, scratch_bytes(Scratch::block, static_cast<size_t>(kernel.scratch_bytes)));
    });
    for (int64_t j = 0; j < all.col_count; ++j) {
      S total = sums[j];
      for (int64_t i = 1; i < chunks; ++i) total += sums[i * all.col_count + j];
      S& out = all.out[j * all.out_col];
      S x = all.alpha * total;
      if (all.beta != 0) x += all.beta * out;
      if (all.bias != nullptr) x += all.bias[j * all.bias_col];
      out = x;
    }
    return true;
  }
  return false;
}

/// Few rows against a matrix that lies along its columns: the matrix is read once, row after row.
template <class S>
void run_stream(const Gemm<S>& g, bool swapped) {
  const GemmKernels<S>& kernel = gemm_kernels<S>();
  const GemmPart<S> first = whole(g, swapped);
  if (batch_count(g) == 1 && run_stream_by_rows(whole(batch_item(g, 0), swapped))) return;
  constexpr int64_t unit = 64;
  const auto bytes = static_cast<size_t>(kernel.scratch_bytes);
  parallel_pieces(
      batch_count(g), first.col_count, unit, unit * g.k * first.row_count, [&](int64_t item, int64_t begin, int64_t end) {
        kernel.stream(cols_of(whole(batch_item(g, item), swapped), begin, end), scratch_bytes(Scratch::block, bytes));
      });
}

template <class S>
void run_block(const Gemm<S>& g, bool swapped) {
  run_parts<S>(batch_count(g), [&](int64_t item) { return whole(batch_item(g, item), swapped); });
}

template <class S>
void gemm_float(const Gemm<S>& g) {
  const GemmKernels<S>& kernel = gemm_kernels<S>();
  const bool a_along_k = g.a_col == 1 || g.k <= 1, b_along_k = g.b_row == 1 || g.k <= 1;
  const bool a_along_m = g.a_row == 1, b_along_n = g.b_col == 1;
  // Instructions for pairs take 16 columns in the time of one; with a few the weights come from memory, which takes longer
  // either way.
  const int64_t few_for_pairs = has_amx_bf16() ? 2 : 4;
  const bool pairs = std::is_same_v<S, BFloat16> && by_pairs(batch_count(g) * g.m * g.n * g.k);
  const int64_t dot_columns = pairs ? few_for_pairs : kernel.dot_columns;
  if (g.m <= dot_columns && b_along_k && (g.m <= g.n || !a_along_k)) return run_dot(g, true);
  if (g.n <= dot_columns && a_along_k) return run_dot(g, false);
  if (g.m <= kernel.stream_rows && b_along_n) return run_stream(g, false);
  if (g.n <= kernel.stream_rows && a_along_m) return run_stream(g, true);
  // Rows are best read in place. Of two that could be, the smaller is packed as long as that is little work; with many rows
  // it pays more that the larger, packed, is read only once.
  constexpr int64_t many_rows = 512;
  run_block(g, b_along_k && (!a_along_k || (g.m < g.n && g.m < many_rows)));
}

template <class T>
void gemm_integer(const Gemm<T>& g) {
  // Unsigned and at least 32 bits wide, so that overflow wraps.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int64_t unit = 4;
  parallel_pieces(batch_count(g), g.m, unit, unit * g.k * g.n, [&](int64_t item_index, int64_t begin, int64_t end) {
    const Gemm<T> item = batch_item(g, item_index);
    U* const sums = scratch<U>(Scratch::block, static_cast<size_t>(item.n));
    for (int64_t i = begin; i < end; ++i) {
      std::fill_n(sums, item.n, U{0});
      for (int64_t p = 0; p < item.k; ++p) {
        const auto x = static_cast<U>(item.a[i * item.a_row + p * item.a_col]);
        const T* const b = item.b + p * item.b_row;
        if (item.b_col == 1)
          for (int64_t j = 0; j < item.n; ++j) sums[j] += x * static_cast<U>(b[j]);
        else
          for (int64_t j = 0; j < item.n; ++j) sums[j] += x * static_cast<U>(b[j * item.b_col]);
      }
      for (int64_t j = 0; j < item.n; ++j) {
        T& out = item.c[i * item.c_row + j * item.c_col];
        U value = static_cast<U>(item.alpha) * sums[j];
        if (item.beta != 0) value += static_cast<U>(item.beta) * static_cast<U>(out);
        if (item.bias != nullptr) value += static_cast<U>(item.bias[j * item.bias_stride]);
        out = static_cast<T>(value);
      }
    }
  });
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& problem) {
  if (problem.m <= 0 || problem.n <= 0 || batch_count(problem) == 0) return;
  if constexpr (std::is_integral_v<T>)
    gemm_integer(problem);
  else
    gemm_float(problem);
}

template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);
template void gemm(const Gemm<BFloat16>&);
template void gemm(const Gemm<Half>&);
template void gemm(const Gemm<uint8_t>&);
template void gemm(const Gemm<int8_t>&);
template void gemm(const Gemm<int16_t>&);
template void gemm(const Gemm<int32_t>&);
template void gemm(const Gemm<int64_t>&);

}  // namespace calque
