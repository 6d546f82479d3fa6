#include "kernel/cpu/gemm/gemm_block.h"

#include "kernel/cpu/convolution/depthwise.h"
#include "kernel/cpu/gemm/gemm_finish.h"
#include "kernel/cpu/gemm/gemm_patches.h"
#include "kernel/cpu/gemm/gemm_tile.h"
#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

// The sums of a block of rows, where the output cannot take them itself, stay in the second-level cache beside the panels.
template <class T>
constexpr int64_t sums_numbers = (768 << 10) / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t tile_numbers = tile_rows * tile_vectors * lanes<T>;
// Rows that are written out together: whole tiles, and whole vectors for when the output is transposed.
constexpr int64_t finish_rows = tile_rows == 6 ? 24 : 16;
// With few rows there is little to gain from the panels' reuse, so blocks get wide and follow the memory's order.
constexpr int64_t few_rows = 32;
constexpr int64_t few_widening = 4;
constexpr int64_t many_packed_rows = 256;

/// rows[i, p] for a tile's rows into out[i * copy_row + p].
template <class S, class T>
void copy_rows(int64_t count, int64_t k, const S* rows, int64_t rows_row, int64_t rows_k, T* out) {
  constexpr int L = lanes<T>;
  if (rows_k == 1) {
    for (int64_t i = 0; i < count; ++i, rows += rows_row, out += copy_row<T>) {
      int64_t p = 0;
      for (; p + L <= k; p += L) store(out + p, load_wide(rows + p));
      for (; p < k; ++p) out[p] = widen(rows[p]);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < count; ++i) out[i * copy_row<T> + p] = widen(rows[i * rows_row + p * rows_k]);
}

template <class S, class T>
void pack_cols(const GemmPart<S>& g, int64_t p, int64_t k, int64_t col, int64_t count, int64_t width, T* out) {
  if (g.patches != nullptr)
    pack_patches(*g.patches, p, k, g.first_patch + col, count, width, out);
  else
    pack_panel(k, count, width, g.cols + p * g.cols_k + col * g.cols_col, g.cols_k, g.cols_col, out);
}

/// Columns of the next panel when `left` are to come: full ones, but never a full and a single vector where two pairs do.
template <class T>
int64_t panel_width(int64_t left) {
  constexpr int L = lanes<T>;
  const int64_t vectors = (left + L - 1) / L;
  return (vectors == 4 ? 2 : min(tile_vectors, vectors)) * L;
}

/// The columns of one block when all are cut into equal ones.
template <class T>
int64_t equal_block(int64_t count, int64_t most) {
  constexpr int64_t panel = lanes<T> * tile_vectors;
  const int64_t blocks = (count + most - 1) / most;
  return blocks <= 1 ? most : round_up((count + blocks - 1) / blocks, panel);
}

/// What of `cols` a block will need that starts at `from`, to be fetched before.
template <class S>
Fetch cols_ahead(const GemmPart<S>& g, const S* from, int64_t k, int64_t cols) {
  if (g.patches != nullptr || from == nullptr) return {};
  if (g.cols_col == 1) return fetch_of(from, k, cols, g.cols_k);
  if (g.cols_k == 1) return fetch_of(from, cols, k, g.cols_col);
  return {};
}

/// How many additions a register may collect. Convolutions elsewhere sum all taps of some 16 channels before they start a new
/// sum; chains that are much longer would round worse than theirs.
template <class S>
int64_t patch_chain(const Patches<S>& patches) {
  const int64_t taps = patches.taps[0] * patches.taps[1] * patches.taps[2];
  return taps == 1 ? 384 : taps == 2 ? 96 : taps < 8 ? 128 : 192;
}

/// A tile whose last vector reaches over the edge of the output, by way of `edge`.
template <class T>
void edge_tile(const TileTask<T>& task, int64_t rows, int64_t cols, TileFunction<T> multiply, Fetch& fetch, T* edge) {
  constexpr int64_t width = lanes<T> * tile_vectors;
  TileTask<T> inner = task;
  inner.out = edge;
  inner.out_row = width;
  inner.in = inner.bias = nullptr;
  multiply(inner, fetch);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T x = edge[i * width + j];
      if (task.in != nullptr) x += task.in[i * task.out_row + j];
      if (task.bias != nullptr) x += task.bias[i * task.bias_row + j * task.bias_col];
      task.out[i * task.out_row + j] = x;
    }
}

/// How a product is cut and where its parts lie: decided once, before its loops.
template <class S>
struct BlockPlan {
  using T = Accumulate<S>;
  static constexpr bool same = sizeof(S) == sizeof(T);

  const GemmPart<S>& g;
  int64_t depth, width;  // of a block: of the summed dimension, and of columns
  bool straight;         // the output itself collects the sums
  bool rows_in_place;    // the rows are read where they lie
  bool cols_in_place;    // the columns, likewise
  bool packs_in_tile;    // the first tile packs the columns while it multiplies
  int64_t chain;         // additions that a register may collect
  T *sums, *panels, *copies, *parked, *edge;

  BlockPlan(const GemmPart<S>& part, void* scratch) : g(part) {
    constexpr int L = lanes<T>;
    constexpr int64_t size = sizeof(S);
    const int64_t wider = g.row_count <= few_rows                                         ? few_widening
                          : g.row_count <= 128 && g.patches == nullptr && g.cols_col == 1 ? 2
                                                                                          : 1;
    const bool packed = g.packed != nullptr;
    depth = k_block<T> / (packed ? 1 : wider);
    width = packed ? packed_width() : equal_block<T>(g.col_count, col_block<T> * wider);
    straight = same && g.k > 0 && g.out_col == 1 && g.alpha == 1 && (g.beta == 0 || g.beta == 1) &&
               (g.bias == nullptr || g.bias_col == 0 || g.bias_col == 1);
    // Copying the rows pays when many panels meet them, or when they lie so that they get in each other's way in the cache.
    rows_in_place =
        same && g.rows_k == 1 && min(width, g.col_count) <= 4 * tile_vectors * L && g.rows_row * size % 4096 != 0;
    // Packing the columns pays when many rows meet them, or when they are spread over many pages.
    cols_in_place = same && !packed && g.patches == nullptr && g.cols_col == 1 && g.row_count <= 128 && g.k <= 128 &&
                    g.cols_k * size < 4096;
    packs_in_tile = same && !packed && g.patches == nullptr && g.cols_col == 1 && !cols_in_place;
    chain = g.patches != nullptr ? patch_chain(*g.patches) : depth;
    sums = static_cast<T*>(scratch);
    panels = sums + sums_numbers<T>;
    copies = panels + k_block<T> * col_block<T>;
    parked = copies + tile_rows * copy_row<T>;
    edge = parked + tile_numbers<T>;
  }

  /// Few rows meet one panel after another, as they lie in memory. With more, this block and the next one, which comes meanwhile, share the
  /// second-level cache; with many, reading them is little beside the work.
  int64_t packed_width() const {
    constexpr int64_t panel = lanes<T> * tile_vectors;
    return g.row_count <= few_rows           ? panel
           : g.row_count <= many_packed_rows ? 4 * panel
                                             : equal_block<T>(g.col_count, col_block<T>);
  }
};

/// The part of a product that the inner loops work on: so many rows and columns, and a stretch of the summed dimension.
struct Stretch {
  int64_t row, rows, col, cols;
  int64_t p, k;      // where the stretch of the summed dimension begins, and its length
  int64_t sums_row;  // from one row of sums to the next
  bool last;         // of the summed dimension
};

/// The columns, as panels as wide as tiles. What a tile packs while it multiplies is left out.
template <class S>
void pack_panels(const BlockPlan<S>& plan, const Stretch& at) {
  using T = Accumulate<S>;
  constexpr int64_t full = lanes<T> * tile_vectors;
  if (plan.g.packed != nullptr) return;
  for (int64_t j = 0, width; j < at.cols; j += width) {
    width = panel_width<T>(at.cols - j);
    const bool packed_later = plan.cols_in_place || (plan.packs_in_tile && width == full && at.rows >= tile_rows);
    if (!packed_later || width > at.cols - j)
      pack_cols(plan.g, at.p, at.k, at.col + j, min(width, at.cols - j), width, plan.panels + j * at.k);
  }
}

/// The panels that come after this stretch, likewise.
template <class S>
Fetch packed_after(const BlockPlan<S>& plan, const Stretch& at) {
  const GemmPart<S>& g = plan.g;
  constexpr int64_t panel = lanes<Accumulate<S>> * tile_vectors;
  const int64_t col = at.last ? at.col + at.cols : at.col, p = at.last ? 0 : at.p + at.k;
  if (g.row_count > many_packed_rows || col >= g.col_count) return {};
  const int64_t panels = (min(plan.width, g.col_count - col) + panel - 1) / panel;
  Fetch fetch = fetch_of(g.packed + col * g.k + p * panel, panels, min(plan.depth, g.k - p) * panel, g.k * panel);
  if (g.row_count <= few_rows) fetch.at_once = burst_lines;
  return fetch;
}

/// The columns that come after this stretch, to be fetched while it is multiplied.
template <class S>
Fetch cols_after(const BlockPlan<S>& plan, const Stretch& at) {
  const GemmPart<S>& g = plan.g;
  if (g.packed != nullptr) return packed_after(plan, at);
  if (!at.last) {
    const int64_t p = at.p + at.k;
    return cols_ahead(g, g.cols + p * g.cols_k + at.col * g.cols_col, min(plan.depth, g.k - p), at.cols);
  }
  const int64_t col = at.col + at.cols, k = min(plan.depth, g.k);
  if (col < g.col_count) return cols_ahead(g, g.cols + col * g.cols_col, k, min(plan.width, g.col_count - col));
  return cols_ahead(g, g.next_cols, k, min(plan.width, g.col_count));
}

/// The rows that come after those of a tile, likewise; `from` is where the tile's begin.
template <class S>
Fetch rows_after(const BlockPlan<S>& plan, const Stretch& at, int64_t i, int64_t here, const S* from) {
  const GemmPart<S>& g = plan.g;
  if (g.packed != nullptr && g.row_count <= few_rows) return {};  // they stay in the cache, the panels do not
  if (g.rows_k == 1 && i + here < at.rows)
    return fetch_of(from + here * g.rows_row, min(tile_rows, at.rows - i - here), at.k, g.rows_row);
  if (g.rows_k == 1 && g.next_rows != nullptr && at.last && at.col + at.cols >= g.col_count)
    return fetch_of(g.next_rows, min(tile_rows, g.row_count), min(plan.depth, g.k), g.rows_row);
  return {};
}

/// Multiplies `here` rows from the i-th on with the panel at column j.
template <class S>
void run_tile(const BlockPlan<S>& plan, const Stretch& at, int64_t i, int64_t here, int64_t j, int64_t width, const S* from,
              Fetch& fetch) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  constexpr int64_t full = L * tile_vectors;
  constexpr bool same = BlockPlan<S>::same;
  const GemmPart<S>& g = plan.g;
  const int64_t cols_left = at.cols - j;
  auto multiply = tile_for<T>(here, width / L);
  TileTask<T> task{};
  task.b = plan.panels + j * at.k;
  task.b_k = width;
  task.out = plan.sums + i * at.sums_row + j;
  task.out_row = at.sums_row;
  task.k = at.k;
  task.chain = plan.chain;
  task.a = plan.copies;
  task.a_row = copy_row<T>;
  task.parked = plan.parked;
  if constexpr (same) {
    if (plan.straight) {
      task.out = g.out + (at.row + i) * g.out_row + at.col + j;
      task.out_row = g.out_row;
    }
    if (plan.rows_in_place) {
      task.a = from;
      task.a_row = g.rows_row;
    }
    const bool packs = plan.packs_in_tile && i == 0 && width == full && here == tile_rows;
    if ((plan.cols_in_place || packs) && width <= cols_left) {
      task.b = g.cols + at.p * g.cols_k + at.col + j;
      task.b_k = g.cols_k;
    }
    if (g.packed != nullptr) {
      task.b = g.packed + (at.col + j) * g.k + at.p * full;
      task.b_k = full;
    }
    if (packs && width <= cols_left) {
      task.packed = plan.panels + j * at.k;
      multiply = packing_tile<T>;
    }
    if (plan.straight && at.last && g.bias != nullptr) {
      task.bias = g.bias + (at.row + i) * g.bias_row + (at.col + j) * g.bias_col;
      task.bias_row = g.bias_row;
      task.bias_col = g.bias_col;
    }
  }
  task.in = at.p != 0 || (plan.straight && g.beta == 1) ? task.out : nullptr;
  if (plan.straight && width > cols_left)
    edge_tile(task, here, cols_left, multiply, fetch, plan.edge);
  else
    multiply(task, fetch);
}

template <class S>
void multiply_stretch(const BlockPlan<S>& plan, const Stretch& at) {
  using T = Accumulate<S>;
  const GemmPart<S>& g = plan.g;
  pack_panels(plan, at);
  Fetch next_cols = cols_after(plan, at);
  int64_t finished = 0;
  for (int64_t i = 0; i < at.rows; i += tile_rows) {
    const int64_t here = min(tile_rows, at.rows - i);
    const S* const from = g.rows + (at.row + i) * g.rows_row + at.p * g.rows_k;
    if (!plan.rows_in_place) copy_rows(here, at.k, from, g.rows_row, g.rows_k, plan.copies);
    Fetch next_rows = rows_after(plan, at, i, here, from);
    for (int64_t j = 0, width; j < at.cols; j += width) {
      width = g.packed != nullptr ? lanes<T> * tile_vectors : panel_width<T>(at.cols - j);
      run_tile(plan, at, i, here, j, width, from, next_rows.lines > 0 ? next_rows : next_cols);
    }
    // Results leave as soon as they are complete, so that writing them overlaps with what comes next.
    const int64_t done = i + here;
    if (!plan.straight && at.last && (done - finished >= finish_rows || done == at.rows)) {
      finish(g, at.row + finished, done - finished, at.col, at.cols, plan.sums + finished * at.sums_row, at.sums_row);
      finished = done;
    }
  }
}

template <class S>
void gemm_block(const GemmPart<S>& g, void* scratch) {
  using T = Accumulate<S>;
  const BlockPlan<S> plan(g, scratch);
  for (int64_t col = 0; col < g.col_count; col += plan.width) {
    const int64_t cols = min(plan.width, g.col_count - col);
    const int64_t sums_row = round_up(cols, lanes<T>);
    const int64_t row_block = plan.straight ? g.row_count : sums_numbers<T> / sums_row / finish_rows * finish_rows;
    for (int64_t row = 0; row < g.row_count; row += row_block) {
      const int64_t rows = min(row_block, g.row_count - row);
      if (g.k == 0) {
        std::memset(plan.sums, 0, static_cast<size_t>(rows * sums_row) * sizeof(T));
        finish(g, row, rows, col, cols, plan.sums, sums_row);
      }
      for (int64_t p = 0; p < g.k; p += plan.depth) {
        const int64_t k = min(plan.depth, g.k - p);
        multiply_stretch(plan, {row, rows, col, cols, p, k, sums_row, p + k == g.k});
      }
    }
  }
}

template <class S>
void pack_all(const GemmPart<S>& g, S* packed) {
  constexpr int64_t width = lanes<S> * tile_vectors;
  for (int64_t col = 0; col < g.col_count; col += width, packed += width * g.k)
    pack_panel(g.k, min(width, g.col_count - col), width, g.cols + col * g.cols_col, g.cols_k, g.cols_col, packed);
}

template <class S>
constexpr auto pack_of() -> void (*)(const GemmPart<S>&, S*) {
  if constexpr (sizeof(S) == sizeof(Accumulate<S>))
    return pack_all<S>;
  else
    return nullptr;
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

/// R rows of weights against C packed columns. `ahead`: from a number to the one to ask for meanwhile, in numbers; 0 for none.
template <class S, int R, int C, bool Ahead>
void dot_tile(const GemmPart<S>& g, const Accumulate<S>* x, int64_t row, int64_t col, int64_t ahead) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  const int64_t stride = dot_stride(g.k);
  const S* const w = g.rows + row * g.rows_row;
  x += col * stride;
  // Two sets of accumulators where one would not keep the multipliers busy.
  constexpr int sets = splits_pairs<S> || R * C < 8 ? 2 : 1;
  constexpr int step = sets * L;
  constexpr bool one_sum = splits_pairs<S> && R * C > 8;
  Vec<T> acc[sets][R][C] = {};
  int64_t p = 0;
  for (; p + step <= g.k; p += step) {
    Vec<T> wv[sets][R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const S* const from = w + r * g.rows_row + p;
      if constexpr (Ahead) {
        __builtin_prefetch(from + ahead, 0, 2);
        if constexpr (step * sizeof(S) > 64) __builtin_prefetch(from + ahead + L, 0, 2);
      }
      if constexpr (splits_pairs<S>) {
        load_pairs(from, wv[0][r], wv[1][r]);
      } else {
#pragma GCC unroll 2
        for (int s = 0; s < sets; ++s) wv[s][r] = load_wide(from + s * L);
      }
    }
    // With the weights in registers each packed vector is loaded once and kept for R products only: the other way round the
    // sums, eight packed vectors and a weight are more than the registers, and every product loads its operand again.
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
#pragma GCC unroll 2
      for (int s = 0; s < sets; ++s) {
        Vec<T> xv = load(x + c * stride + p + s * L);
        keep_in_register(xv);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          Vec<T>& to = acc[one_sum ? 0 : s][r][c];
          to = fma(wv[s][r], xv, to);
        }
      }
  }
  if constexpr (sets == 2 && !one_sum)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) acc[0][r][c] += acc[1][r][c];
  T sums[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum_each<C, L / 2>(static_cast<const Vec<T>*>(acc[0][r]), static_cast<T*>(sums[r]));
  for (; p < g.k; ++p)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sums[r][c] += widen(w[r * g.rows_row + p]) * x[c * stride + p];
#pragma GCC unroll 1
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r)
      g.out[(row + r) * g.out_row + (col + c) * g.out_col] = finish_one(g, row + r, col + c, sums[r][c]);
}

constexpr int dot_rows = tile_vectors, dot_cols = tile_rows;

// A part beyond this, a core's second-level cache, comes from far memory, and reading runs at three quarters of its speed
// unless lines are asked for well ahead, across the borders of pages, where the machine by itself stops.
constexpr int64_t far_bytes = 2 << 20, ahead_bytes = 8192;

template <class S, int R, int C>
void dot_tiles(const GemmPart<S>& g, const Accumulate<S>* x, int64_t col, int64_t cols, int64_t ahead) {
  if constexpr (C > 1) {
    if (cols < C) return dot_tiles<S, (C - 1 <= 2 ? 4 : R), C - 1>(g, x, col, cols, ahead);
  }
  int64_t row = 0;
  if (ahead != 0)
    for (; row + R <= g.row_count; row += R) dot_tile<S, R, C, true>(g, x, row, col, ahead);
  for (; row + R <= g.row_count; row += R) dot_tile<S, R, C, false>(g, x, row, col, 0);
  for (; row < g.row_count; ++row) dot_tile<S, 1, C, false>(g, x, row, col, 0);
}

template <class S>
void dot(const GemmPart<S>& g, const void* packed_cols) {
  const auto* x = static_cast<const Accumulate<S>*>(packed_cols);
  // Rows in stretches that stay in cache while every group of columns goes over them; the first group asks for the next stretch.
  constexpr int64_t stretch = 12;
  const int64_t row_bytes = g.rows_row * static_cast<int64_t>(sizeof(S));
  int64_t ahead = 0;
  if (row_bytes > 0 && g.row_count * g.k * static_cast<int64_t>(sizeof(S)) > far_bytes)
    ahead = g.rows_row * round_up((ahead_bytes + row_bytes - 1) / row_bytes, stretch);
  if (g.col_count <= dot_cols) return dot_tiles<S, dot_rows, dot_cols>(g, x, 0, g.col_count, ahead);
  GemmPart<S> part = g;
  for (int64_t row = 0; row < g.row_count; row += stretch) {
    part.row_count = min(stretch, g.row_count - row);
    for (int64_t col = 0; col < g.col_count; col += dot_cols)
      dot_tiles<S, dot_rows, dot_cols>(part, x, col, min(dot_cols, g.col_count - col), col == 0 ? ahead : 0);
    part.rows += stretch * g.rows_row;
    part.out += stretch * g.out_row;
    if (part.bias != nullptr) part.bias += stretch * g.bias_row;
  }
}

// The streaming kernel: a few rows of the matrix `cols` at a time, added into the accumulators of each output row. Columns in
// blocks whose accumulators stay in the first-level cache, k in blocks that bound the rounding error.
constexpr int stream_tile_rows = 4;
constexpr int64_t stream_bytes = 16384, stream_k = 256;

template <class T>
constexpr int64_t stream_cols(int64_t rows) {
  return stream_bytes / static_cast<int64_t>(sizeof(T)) / rows / 64 * 64;
}

/// sums[row .. row + R, :] += rows[:, p .. p + U] * cols[p .. p + U, col ..].
template <class S, int R, int U>
void stream_rows(const GemmPart<S>& g, int64_t row, int64_t p, int64_t col, int64_t cols, Accumulate<S>* sums) {
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
  const S* const b = g.cols + p * g.cols_k + col;
  T* const out = sums + row * cols;
  // The next rows of `cols` are asked for evenly, half of them beside each of two groups of rows. With one group and long rows
  // the machine looks ahead well enough by itself, and the columns of a block are too many for the first-level cache.
  const bool two = g.row_count > stream_tile_rows;
  const bool ahead = two || U * cols * static_cast<int64_t>(sizeof(S)) <= stream_bytes;
  const bool far = !two && g.k * g.col_count * static_cast<int64_t>(sizeof(S)) > far_bytes;
  const bool ahead_low = ahead && row == 0, ahead_high = ahead && (row != 0 || !two);
  int64_t j = 0;
  for (; j + L <= cols; j += L) {
    Vec<T> total[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) total[r] = load(out + r * cols + j);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      if (far)
        __builtin_prefetch(b + (u + 4 * U) * g.cols_k + j, 0, 2);
      else if (u < U / 2 ? ahead_low : ahead_high)
        __builtin_prefetch(b + (u + U) * g.cols_k + j, 0, 3);
      const Vec<T> bv = load_wide(b + u * g.cols_k + j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) total[r] = fma(av[r][u], bv, total[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store(out + r * cols + j, total[r]);
  }
  for (; j < cols; ++j)
    for (int u = 0; u < U; ++u)
      for (int r = 0; r < R; ++r) out[r * cols + j] += a[r][u] * widen(b[u * g.cols_k + j]);
}

template <class S, int R, int U>
void stream_step(const GemmPart<S>& g, int64_t row, int64_t p, int64_t count, int64_t col, int64_t cols,
                 Accumulate<S>* sums) {
  if (count == U) return stream_rows<S, R, U>(g, row, p, col, cols, sums);
  for (int64_t i = 0; i < count; ++i) stream_rows<S, R, 1>(g, row, p + i, col, cols, sums);
}

template <class S>
void stream(const GemmPart<S>& g, void* scratch) {
  using T = Accumulate<S>;
  const int64_t block = stream_cols<T>(g.row_count);
  const int64_t step = g.row_count == 1 ? 8 : 4;  // a single row's sums are fetched and stored half as often
  T* const totals = static_cast<T*>(scratch);
  T* const sums = totals + stream_bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t col = 0; col < g.col_count; col += block) {
    const int64_t cols = min(block, g.col_count - col), count = g.row_count * cols;
    std::memset(totals, 0, static_cast<size_t>(count) * sizeof(T));
    for (int64_t p0 = 0; p0 < g.k; p0 += stream_k) {
      std::memset(sums, 0, static_cast<size_t>(count) * sizeof(T));
      const int64_t end = min(g.k, p0 + stream_k);
      for (int64_t p = p0; p < end; p += step) {
        const int64_t ks = min(step, end - p);
        for (int64_t row = 0; row < g.row_count; row += stream_tile_rows) {
          switch (min(stream_tile_rows, g.row_count - row)) {
            case 1:
              if (g.row_count == 1)
                stream_step<S, 1, 8>(g, row, p, ks, col, cols, sums);
              else
                stream_step<S, 1, 4>(g, row, p, ks, col, cols, sums);
              break;
            case 2: stream_step<S, 2, 4>(g, row, p, ks, col, cols, sums); break;
            case 3: stream_step<S, 3, 4>(g, row, p, ks, col, cols, sums); break;
            default: stream_step<S, 4, 4>(g, row, p, ks, col, cols, sums); break;
          }
        }
      }
      for (int64_t i = 0; i < count; ++i) totals[i] += sums[i];
    }
    finish(g, 0, g.row_count, col, cols, totals, cols);
  }
}

template <class S>
constexpr GemmKernels<S> gemm_kernels = [] {
  using T = Accumulate<S>;
  constexpr int64_t numbers = sums_numbers<T> + k_block<T> * col_block<T> + tile_rows * copy_row<T> + 2 * tile_numbers<T>;
  return GemmKernels<S>{gemm_block<S>,
                        numbers * static_cast<int64_t>(sizeof(T)),
                        pack_dot<S>,
                        dot<S>,
                        3 * dot_cols,
                        stream<S>,
                        2 * stream_tile_rows,
                        depthwise<S>,
                        depthwise_numbers<S>,
                        pack_of<S>(),
                        lanes<T> * tile_vectors};
}();

static_assert(finish_rows % tile_rows == 0);
static_assert(sums_numbers<double> >= finish_rows * few_widening * col_block<double>, "some rows of sums fit at any width");

}  // namespace

namespace CALQUE_ISA {
const GemmKernels<float> gemm_float = gemm_kernels<float>;
const GemmKernels<double> gemm_double = gemm_kernels<double>;
const GemmKernels<BFloat16> gemm_bfloat16 = gemm_kernels<BFloat16>;
const GemmKernels<Half> gemm_half = gemm_kernels<Half>;
}  // namespace CALQUE_ISA

}  // namespace calque
