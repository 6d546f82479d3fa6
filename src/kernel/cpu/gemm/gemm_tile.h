// The register tile at the heart of matrix multiplication and attention, and the packing of its vector operand. For
// *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm/gemm_finish.h"
#include "kernel/cpu/simd/vec.h"

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

// Blocks of matrix multiplication: a panel block of k_block x col_block stays in the second-level cache, the copy of a tile's
// rows in the first-level cache. k_block also bounds how long a chain of additions gets, which keeps the rounding error near
// that of others.
template <class T>
constexpr int64_t k_block = sizeof(T) == 4 ? 384 : 256;
#if defined(__AVX512F__)
template <class T>
constexpr int64_t col_block = lanes<T> * tile_vectors * 10;
#else
template <class T>
constexpr int64_t col_block = lanes<T> * tile_vectors * (64 / vector_bytes) * 4;
#endif
/// From one row of a tile's copied rows to the next: a line more than a block, so that the rows of one k do not share a set of
/// the cache.
template <class T>
constexpr int64_t copy_row = k_block<T> + 64 / static_cast<int64_t>(sizeof(T));

/// Lines of far memory that tiles ask for while they compute: `lines` of them from `at` on, `width` in a row of the matrix.
struct Fetch {
  const char* at = nullptr;
  int64_t lines = 0, left = 0, width = 0;
  int64_t skip = 0;     // bytes from the end of one row's lines to the next row's first
  int64_t at_once = 1;  // lines at a time: 1, or burst_lines where they lie one after another and are needed soon
};
constexpr int64_t burst_lines = 6;

/// `rows` rows of `count` numbers, `pitch` numbers apart. Rows a large power of two apart share few sets of the second-level
/// cache: only as many are fetched as would still be there when they are needed.
template <class S>
CALQUE_INLINE Fetch fetch_of(const S* from, int64_t rows, int64_t count, int64_t pitch) {
  constexpr int64_t size = sizeof(S), sets_bytes = 64 << 10, ways = 8;
  const int64_t width = (count * size + 63) / 64, bytes = pitch * size;
  const int64_t apart = bytes & -bytes;
  const int64_t most = apart <= 0 ? rows : ways * (apart >= sets_bytes ? 1 : sets_bytes / apart);
  return {reinterpret_cast<const char*>(from), min(rows, most) * width, width, width, bytes - width * 64};
}

/// One multiplication of R rows, each along k, by V vectors of columns: out = a * b + in + bias.
template <class T>
struct TileTask {
  int64_t k, chain;  // `chain`: after how many additions in one register a new sum begins
  const T* a;
  int64_t a_row;
  const T* b;
  int64_t b_k;
  T* out;
  int64_t out_row;
  const T* in;                 // null for none; may be `out`, and has its stride
  const T* bias;               // null for none
  int64_t bias_row, bias_col;  // bias_col: 0 or 1
  T* packed;                   // where packing_tile leaves the panel it has read
  T* parked;                   // room for the sums of finished chains, tile_rows x tile_vectors vectors
};

/// Where a tile stands in its operands. Rows are reached from every third one, so that few registers hold all addresses; the
/// compiler, left alone, keeps an offset for every row and step, most of them in memory.
template <class T, int R>
struct TilePlace {
  static constexpr int bases = (R + 2) / 3;
  const char* rows[bases];
  int64_t rows_row;  // bytes
  const T* b;
  int64_t b_k;
  T* packed;

  CALQUE_INLINE explicit TilePlace(const TileTask<T>& t)
      : rows_row(t.a_row * static_cast<int64_t>(sizeof(T))), b(t.b), b_k(t.b_k), packed(t.packed) {
#pragma GCC unroll 4
    for (int i = 0; i < bases; ++i) rows[i] = reinterpret_cast<const char*>(t.a + 3 * i * t.a_row);
  }

  /// What is known about the addresses is forgotten: each is computed where it is used, inside the instruction.
  CALQUE_INLINE void forget() {
#pragma GCC unroll 4
    for (int i = 0; i < bases; ++i) asm("" : "+r"(rows[i]));
    asm("" : "+r"(rows_row), "+r"(b));
  }

  CALQUE_INLINE T row(int i, int step) const {
    T x;
    std::memcpy(&x, rows[i / 3] + i % 3 * rows_row + step * static_cast<int>(sizeof(T)), sizeof x);
    return x;
  }
};

/// N steps along k.
template <class T, int R, int V, bool Pack, int N>
CALQUE_INLINE void tile_steps(TilePlace<T, R>& at, Vec<T> (&acc)[R][V]) {
#pragma GCC unroll 4
  for (int u = 0; u < N; ++u) {
    at.forget();
    Vec<T> bv[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) bv[j] = load(at.b + j * lanes<T>);
    if constexpr (Pack)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) {
        __builtin_prefetch(at.b + 8 * at.b_k + j * lanes<T>, 0, 3);
        __builtin_prefetch(at.packed + ((u + 8) * V + j) * lanes<T>, 1, 3);
        store(at.packed + (u * V + j) * lanes<T>, bv[j]);
      }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vec<T> av = splat(at.row(i, u));
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[i][j] = fma(av, bv[j], acc[i][j]);
    }
    at.b += at.b_k;
  }
#pragma GCC unroll 4
  for (const char*& r : at.rows) r += N * sizeof(T);
  if constexpr (Pack) at.packed += N * V * lanes<T>;
}

/// acc += a * b over k, asking for what `fetch` says meanwhile.
template <class T, int R, int V, bool Pack>
CALQUE_INLINE void tile_run(int64_t k, TilePlace<T, R>& at, Vec<T> (&acc)[R][V], Fetch& fetch) {
  constexpr int step = 4, fetch_step = 2;
  if (fetch.at_once != 1) {
    int64_t count = min(k / fetch_step, fetch.lines / burst_lines);
    const char* from = fetch.at;
    fetch.lines -= count * burst_lines;
    k -= count * fetch_step;
    for (; count > 0; --count) {
#pragma GCC unroll 6
      for (int64_t i = 0; i < burst_lines; ++i) __builtin_prefetch(from + 64 * i, 0, 2);
      from += 64 * burst_lines;
      tile_steps<T, R, V, Pack, fetch_step>(at, acc);
    }
    fetch.at = from;
  } else if (fetch.lines > 0) {
    int64_t count = min(k / fetch_step, fetch.lines);
    const char* from = fetch.at;
    int64_t left = fetch.left;
    const int64_t width = fetch.width, skip = fetch.skip;
    fetch.lines -= count;
    k -= count * fetch_step;
    for (; count > 0; --count) {
      __builtin_prefetch(from, 0, 2);
      from += 64;
      if (--left == 0) {
        from += skip;
        left = width;
      }
      tile_steps<T, R, V, Pack, fetch_step>(at, acc);
    }
    fetch.at = from;
    fetch.left = left;
  }
  for (; k >= step; k -= step) tile_steps<T, R, V, Pack, step>(at, acc);
  for (; k > 0; --k) tile_steps<T, R, V, Pack, 1>(at, acc);
}

template <class T, int R, int V, bool Pack = false>
void tile(const TileTask<T>& t, Fetch& fetch) {
  constexpr int L = lanes<T>;
  Vec<T> acc[R][V] = {};
  // Written at the end, so it may arrive meanwhile; a short product would only wait behind it.
  constexpr int64_t short_k = 128;
  if (t.k > short_k)
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) __builtin_prefetch(t.out + i * t.out_row + j * L, 1, 3);
  TilePlace<T, R> at(t);
  T* const parked = t.parked;
  for (int64_t todo = t.k, done = 0;;) {
    const int64_t k = min(t.chain, todo);
    tile_run<T, R, V, Pack>(k, at, acc, fetch);
    if (done != 0)
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) acc[i][j] += load(parked + (i * V + j) * L);
    todo -= k;
    done += k;
    if (todo == 0) break;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) {
        store(parked + (i * V + j) * L, acc[i][j]);
        acc[i][j] = Vec<T>{};
      }
  }
  if (t.in != nullptr)
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[i][j] += load(t.in + i * t.out_row + j * L);
  if (t.bias != nullptr)
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const T* const bias = t.bias + i * t.bias_row;
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) acc[i][j] += t.bias_col == 0 ? splat(*bias) : load(bias + j * L);
    }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) store(t.out + i * t.out_row + j * L, acc[i][j]);
}

/// A full tile that reads its columns where they lie and leaves them packed for the tiles below: cheaper than doing it before.
template <class T>
void packing_tile(const TileTask<T>& t, Fetch& fetch) {
  tile<T, tile_rows, tile_vectors, true>(t, fetch);
}

template <class T>
using TileFunction = void (*)(const TileTask<T>&, Fetch&);

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
      for (; j + L <= count; j += L) {
        // Rows lie far apart, where the machine does not look ahead by itself.
        __builtin_prefetch(cols + 6 * cols_k + j, 0, 2);
        store(out + j, load_wide(cols + j));
      }
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
        for (int i = 0; i < L; ++i) {
          __builtin_prefetch(from + i * cols_col + p + 128 / static_cast<int>(sizeof(S)), 0, 2);
          v[i] = load_wide(from + i * cols_col + p);
        }
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
