// Everything is kept with the query row as the vector lane: scores are [key, row], running maximum and sum one vector per
// panel of rows, the output [value dim, row]. So the softmax needs no sums across lanes, keys and values are read where they
// lie, and only the queries are transposed going in and the output coming out.
#include "kernel/cpu/attention_block.h"
#include "kernel/cpu/gemm_tile.h"
#include "kernel/cpu/vec.h"
#include "kernel/cpu/vec_exp.h"

namespace calque {
namespace {

constexpr int64_t key_block = 128;
constexpr int panels_at_once = 2;
template <class T>
constexpr int panel_rows = lanes<T> * tile_vectors;

template <class T>
T log_of(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_logf(x);
  else
    return __builtin_log(x);
}

template <class T>
constexpr T infinity = static_cast<T>(__builtin_inf());

/// One panel's running state; the arrays are in the scratch memory.
template <class T>
struct Panel {
  int64_t first;  // row
  int64_t rows;   // in use
  int64_t vectors;
  T* q;                               // [head_dim, vectors * lanes], scaled
  T* out;                             // [value_dim, vectors * lanes]
  T maximum[panel_rows<T>];           // of the scores so far
  T sum[panel_rows<T>];               // of exp(score - maximum)
  T position[panel_rows<T>];          // of each row in its head, as a number to compare with
  int64_t least_position, last_position;
};

template <class S, class T>
void start_panel(const Attention<S>& g, int64_t batch, int64_t kv_head, int64_t first, int64_t last, Panel<T>& panel) {
  constexpr int L = lanes<T>;
  panel.first = first;
  panel.rows = min(panel_rows<T>, last - first);
  panel.vectors = (panel.rows + L - 1) / L;
  const int64_t width = panel.vectors * L;
  panel.least_position = g.q_length;
  panel.last_position = 0;
  const T scale = static_cast<T>(g.scale);
  for (int64_t i = 0; i < width; ++i) {
    panel.maximum[i] = -infinity<T>;
    panel.sum[i] = 0;
    const int64_t row = first + (i < panel.rows ? i : 0);
    const int64_t position = row % g.q_length, head = kv_head * g.group + row / g.q_length;
    panel.position[i] = static_cast<T>(position);
    if (position < panel.least_position) panel.least_position = position;
    if (position > panel.last_position) panel.last_position = position;
    const S* const q = g.q + batch * g.q_strides[0] + head * g.q_strides[1] + position * g.q_strides[2];
    if (i < panel.rows)
      for (int64_t d = 0; d < g.head_dim; ++d) panel.q[d * width + i] = scale * widen(q[d]);
    else
      for (int64_t d = 0; d < g.head_dim; ++d) panel.q[d * width + i] = 0;
  }
  std::memset(panel.out, 0, static_cast<size_t>(g.value_dim * width) * sizeof(T));
}

/// One mask number as something to add to the score.
template <class S, class T>
T mask_value(const Attention<S>& g, int64_t offset) {
  switch (g.mask_kind) {
    case AttentionMask::none: return 0;
    case AttentionMask::boolean: return static_cast<const uint8_t*>(g.mask)[offset] != 0 ? T(0) : -infinity<T>;
    case AttentionMask::additive: return widen(static_cast<const S*>(g.mask)[offset]);
    case AttentionMask::additive_float: return static_cast<const float*>(g.mask)[offset];
  }
  return 0;
}

/// scores[key, row] += mask[row, key].
template <class S, class T>
void add_mask(const Attention<S>& g, int64_t batch, int64_t kv_head, const Panel<T>& panel, int64_t key, int64_t keys,
              T* scores) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  const auto offset = [&](int64_t i) {
    const int64_t row = panel.first + i;
    return batch * g.mask_strides[0] + (kv_head * g.group + row / g.q_length) * g.mask_strides[1] +
           row % g.q_length * g.mask_strides[2] + key * g.mask_strides[3];
  };
  const bool rows_share = g.mask_strides[2] == 0 && (g.mask_strides[1] == 0 || panel.first / g.q_length ==
                                                                                  (panel.first + panel.rows - 1) / g.q_length);
  if (rows_share) {
    const int64_t start = offset(0);
    for (int64_t p = 0; p < keys; ++p) {
      const Vec<T> value = splat(mask_value<S, T>(g, start + p * g.mask_strides[3]));
      for (int64_t j = 0; j < width; j += L) store(scores + p * width + j, load(scores + p * width + j) + value);
    }
    return;
  }
  // Rows of the mask lie along the keys: turn squares of them around.
  for (int64_t j = 0; j < panel.rows; j += L) {
    const int64_t here = min(L, panel.rows - j);
    for (int64_t p = 0; p < keys; p += L) {
      const int64_t count = min(L, keys - p);
      T square[L][L] = {};
      for (int64_t i = 0; i < here; ++i) {
        const int64_t start = offset(j + i) + p * g.mask_strides[3];
        if (g.mask_strides[3] == 1 && count == L) {
          switch (g.mask_kind) {
            case AttentionMask::none: break;
            case AttentionMask::boolean: {
              const uint8_t* const m = static_cast<const uint8_t*>(g.mask) + start;
              for (int c = 0; c < L; ++c) square[i][c] = m[c] != 0 ? T(0) : -infinity<T>;
              break;
            }
            case AttentionMask::additive: store(square[i], load_wide(static_cast<const S*>(g.mask) + start)); break;
            case AttentionMask::additive_float: {
              const float* const m = static_cast<const float*>(g.mask) + start;
              for (int c = 0; c < L; ++c) square[i][c] = m[c];
              break;
            }
          }
        } else {
          for (int64_t c = 0; c < count; ++c) square[i][c] = mask_value<S, T>(g, start + c * g.mask_strides[3]);
        }
      }
      Vec<T> v[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) v[i] = load(square[i]);
      transpose<T>(v);
      T turned[L][L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) store(turned[i], v[i]);
      for (int64_t c = 0; c < count; ++c) {
        T* const s = scores + (p + c) * width + j;
        store(s, load(s) + load(turned[c]));
      }
    }
  }
}

template <class T>
void apply_causal(const Panel<T>& panel, int64_t key, int64_t keys, T* scores) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  const Vec<T> never = splat(-infinity<T>);
  for (int64_t p = key > panel.least_position ? 0 : panel.least_position - key; p < keys; ++p) {
    const Vec<T> here = splat(static_cast<T>(key + p));
    for (int64_t j = 0; j < width; j += L) {
      T* const s = scores + p * width + j;
      store(s, load(panel.position + j) < here ? never : load(s));
    }
  }
}

/// Scores become weights relative to the new maximum; sum and output so far are brought to it.
template <class T, int V>
void softmax_step(Panel<T>& panel, int64_t value_dim, int64_t keys, T* scores) {
  constexpr int L = lanes<T>;
  constexpr int64_t width = V * L;
  Vec<T> top[2][V];
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) top[0][j] = top[1][j] = load(panel.maximum + j * L);
  int64_t p = 0;
  for (; p + 2 <= keys; p += 2)
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) top[u][j] = max<T>(load(scores + (p + u) * width + j * L), top[u][j]);
  if (p < keys)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) top[0][j] = max<T>(load(scores + p * width + j * L), top[0][j]);

  Vec<T> base[V], sum[V], factor[V];
  bool changed = false;
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) {
    const Vec<T> before = load(panel.maximum + j * L), now = max<T>(top[0][j], top[1][j]);
    // A row that has seen no key yet has maximum -infinity; 0 in its place makes every weight 0 instead of NaN.
    base[j] = now == -infinity<T> ? Vec<T>{} : now;
    factor[j] = exp(before - base[j]);
    sum[j] = load(panel.sum + j * L) * factor[j];
    store(panel.maximum + j * L, now);
    T factors[L];
    store(factors, factor[j]);
    for (int i = 0; i < L; ++i) changed |= factors[i] != 1;
  }
  for (p = 0; p < keys; ++p)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      const Vec<T> weight = exp(load(scores + p * width + j * L) - base[j]);
      store(scores + p * width + j * L, weight);
      sum[j] += weight;
    }
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) store(panel.sum + j * L, sum[j]);
  if (!changed) return;
  for (int64_t d = 0; d < value_dim; ++d)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      T* const o = panel.out + d * width + j * L;
      store(o, load(o) * factor[j]);
    }
}

/// scores[key, row] = k[key] . q[row], R keys at a time.
template <class T, int V, int R = tile_rows>
void score_keys(int64_t keys, int64_t dim, const T* k, int64_t k_row, const T* q, T* scores) {
  constexpr int64_t width = V * lanes<T>;
  for (; keys >= R; keys -= R, k += R * k_row, scores += R * width)
    tile_body<T, R, V>(dim, k, k_row, 1, q, width, scores, width, false);
  if constexpr (R > 1)
    if (keys > 0) score_keys<T, V, R / 2>(keys, dim, k, k_row, q, scores);
}

/// out[d, row] += sum over keys of v[key, d] * weights[key, row], R of d at a time.
template <class T, int V, int R = tile_rows>
void add_values(int64_t keys, int64_t dim, const T* v, int64_t v_row, const T* weights, T* out) {
  constexpr int64_t width = V * lanes<T>;
  for (; dim >= R; dim -= R, v += R, out += R * width)
    tile_body<T, R, V>(keys, v, 1, v_row, weights, width, out, width, true);
  if constexpr (R > 1)
    if (dim > 0) add_values<T, V, R / 2>(keys, dim, v, v_row, weights, out);
}

template <class S, class T, int V>
void panel_step(const Attention<S>& g, int64_t batch, int64_t kv_head, Panel<T>& panel, int64_t key, int64_t keys,
                const T* k, int64_t k_row, const T* v, int64_t v_row, T* scores) {
  score_keys<T, V>(keys, g.head_dim, k, k_row, panel.q, scores);
  if (g.mask_kind != AttentionMask::none) add_mask<S, T>(g, batch, kv_head, panel, key, keys, scores);
  if (g.causal && key + keys - 1 > panel.least_position) apply_causal(panel, key, keys, scores);
  softmax_step<T, V>(panel, g.value_dim, keys, scores);
  add_values<T, V>(keys, g.value_dim, v, v_row, scores, panel.out);
}

template <class S, class T>
void finish_panel(const Attention<S>& g, int64_t batch, int64_t kv_head, const Panel<T>& panel) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  for (int64_t j = 0; j < panel.rows; j += L) {
    const int64_t here = min(L, panel.rows - j);
    const Vec<T> sum = load(panel.sum + j);
    const Vec<T> inverse = sum == 0 ? Vec<T>{} : 1 / sum;
    S* out[L] = {};
    for (int64_t i = 0; i < here; ++i) {
      const int64_t row = panel.first + j + i, position = row % g.q_length, head = kv_head * g.group + row / g.q_length;
      out[i] = g.out + batch * g.out_strides[0] + head * g.out_strides[1] + position * g.out_strides[2];
      if (g.logsumexp != nullptr) {
        const T total = panel.sum[j + i];
        g.logsumexp[batch * g.logsumexp_strides[0] + head * g.logsumexp_strides[1] + position * g.logsumexp_strides[2]] =
            total == 0 ? 0 : panel.maximum[j + i] + log_of(total);
      }
    }
    int64_t d = 0;
    for (; d + L <= g.value_dim; d += L) {
      Vec<T> v[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) v[i] = load(panel.out + (d + i) * width + j) * inverse;
      transpose<T>(v);
      if (here == L) {
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) store_narrow(out[i] + d, v[i]);
      } else {
        for (int64_t i = 0; i < here; ++i) store_narrow(out[i] + d, v[i]);
      }
    }
    for (; d < g.value_dim; ++d)
      for (int64_t i = 0; i < here; ++i) {
        const T value = panel.out[d * width + j + i] * inverse[i];
        if constexpr (sizeof(S) == sizeof(T))
          out[i][d] = value;
        else
          out[i][d] = narrow<S>(value);
      }
  }
}

template <class S, class T>
void widen_rows(int64_t rows, int64_t count, const S* from, int64_t from_row, T* out) {
  constexpr int L = lanes<T>;
  for (int64_t i = 0; i < rows; ++i, from += from_row, out += count) {
    int64_t d = 0;
    for (; d + L <= count; d += L) store(out + d, load_wide(from + d));
    for (; d < count; ++d) out[d] = widen(from[d]);
  }
}

template <class S>
void rows(const Attention<S>& g, int64_t batch, int64_t kv_head, int64_t first, int64_t last, Accumulate<S>* scratch) {
  using T = Accumulate<S>;
  Panel<T> panels[panels_at_once];
  T* const scores = scratch;
  T* const wide_k = scores + key_block * panel_rows<T>;
  T* const wide_v = wide_k + key_block * g.head_dim;
  T* memory = wide_v + key_block * g.value_dim;
  int count = 0;
  int64_t keys_seen = 0;
  for (int64_t row = first; row < last; row += panel_rows<T>) {
    Panel<T>& panel = panels[count++];
    panel.q = memory;
    panel.out = memory + panel_rows<T> * g.head_dim;
    memory += panel_rows<T> * (g.head_dim + g.value_dim);
    start_panel<S, T>(g, batch, kv_head, row, last, panel);
    if (panel.last_position >= keys_seen) keys_seen = panel.last_position + 1;
  }
  if (!g.causal || keys_seen > g.kv_length) keys_seen = g.kv_length;

  const S* const k = g.k + batch * g.k_strides[0] + kv_head * g.k_strides[1];
  const S* const v = g.v + batch * g.v_strides[0] + kv_head * g.v_strides[1];
  for (int64_t key = 0; key < keys_seen; key += key_block) {
    const int64_t block = min(key_block, keys_seen - key);
    const T* kb = wide_k;
    const T* vb = wide_v;
    int64_t k_row = g.head_dim, v_row = g.value_dim;
    if constexpr (sizeof(S) == sizeof(T)) {
      kb = k + key * g.k_strides[2];
      vb = v + key * g.v_strides[2];
      k_row = g.k_strides[2];
      v_row = g.v_strides[2];
    } else {
      widen_rows(block, g.head_dim, k + key * g.k_strides[2], g.k_strides[2], wide_k);
      widen_rows(block, g.value_dim, v + key * g.v_strides[2], g.v_strides[2], wide_v);
    }
    for (int i = 0; i < count; ++i) {
      Panel<T>& panel = panels[i];
      const int64_t keys = g.causal ? min(block, panel.last_position + 1 - key) : block;
      if (keys <= 0) continue;
      if (panel.vectors == 1) panel_step<S, T, 1>(g, batch, kv_head, panel, key, keys, kb, k_row, vb, v_row, scores);
      if (panel.vectors == 2) panel_step<S, T, 2>(g, batch, kv_head, panel, key, keys, kb, k_row, vb, v_row, scores);
      if constexpr (tile_vectors >= 3)
        if (panel.vectors == 3) panel_step<S, T, 3>(g, batch, kv_head, panel, key, keys, kb, k_row, vb, v_row, scores);
    }
  }
  for (int i = 0; i < count; ++i) finish_panel<S, T>(g, batch, kv_head, panels[i]);
}

template <class S>
int64_t scratch_numbers(int64_t head_dim, int64_t value_dim) {
  using T = Accumulate<S>;
  return key_block * (panel_rows<T> + head_dim + value_dim) + panels_at_once * panel_rows<T> * (head_dim + value_dim);
}

template <class S>
constexpr AttentionKernels<S> kernels = {rows<S>, scratch_numbers<S>, panels_at_once* panel_rows<Accumulate<S>>,
                                         panel_rows<Accumulate<S>>};

}  // namespace

namespace CALQUE_ISA {
const AttentionKernels<float> attention_float = kernels<float>;
const AttentionKernels<double> attention_double = kernels<double>;
const AttentionKernels<BFloat16> attention_bfloat16 = kernels<BFloat16>;
const AttentionKernels<Half> attention_half = kernels<Half>;
}  // namespace CALQUE_ISA

}  // namespace calque
