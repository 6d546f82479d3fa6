#include "kernel/cpu/attention/attention_panel.h"

namespace calque {
namespace {

constexpr int panels_at_once = 2;

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

/// Scores become weights relative to the new maximum; sum and output so far are brought to it.
template <class T, int V>
void softmax_step(Panel<T>& panel, int64_t value_dim, int64_t keys, T* scores) {
  constexpr int L = lanes<T>;
  const Step<T, V> step = raise_maximum<T, V>(panel, keys, scores, 1);
  Vec<T> sum[V] = {};
  for (int64_t p = 0; p < keys; ++p)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      const Vec<T> weight = exp(load(scores + (p * V + j) * L) - step.base[j]);
      store(scores + (p * V + j) * L, weight);
      sum[j] += weight;
    }
  rescale<T, V>(panel, value_dim, step, sum);
}

template <class S, class T, int V>
void panel_step(const Attention<S>& g, int64_t batch, Panel<T>& panel, const T* q, int64_t key, int64_t keys, const T* k,
                int64_t k_row, const T* v, int64_t v_row, T* scores) {
  score_keys<T, V>(keys, g.head_dim, k, k_row, q, scores);
  if (g.mask_kind != MaskKind::none) add_mask<S, T>(g, batch, panel, key, keys, scores);
  if (g.causal && key + keys - 1 > panel.least_position) apply_causal(panel, key, keys, scores);
  softmax_step<T, V>(panel, g.value_dim, keys, scores);
  add_values<T, V>(keys, g.value_dim, v, v_row, scores, panel.out);
}

/// out[d * width + i] = scale * number d of query row i; 0 for the lanes not in use.
template <class S, class T>
void pack_queries(const Attention<S>& g, int64_t batch, const Panel<T>& panel, T* out) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  const T scale = static_cast<T>(g.scale);
  for (int64_t j = 0; j < panel.rows; j += L) {
    const int64_t here = min(L, panel.rows - j);
    const S* from[L];
    for (int64_t i = 0; i < here; ++i) from[i] = query_row(g, batch, panel.head[j + i], panel.place[j + i]);
    int64_t d = 0;
    for (; d + L <= g.head_dim; d += L) {
      Vec<T> v[L] = {};
      for (int64_t i = 0; i < here; ++i) v[i] = scale * load_wide(from[i] + d);
      transpose<T>(v);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) store(out + (d + i) * width + j, v[i]);
    }
    for (; d < g.head_dim; ++d)
      for (int64_t i = 0; i < L; ++i) out[d * width + j + i] = i < here ? scale * widen(from[i][d]) : 0;
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
void rows_in_lanes(const Attention<S>& g, int64_t batch, int64_t kv_head, int64_t first, int64_t last,
                   Accumulate<S>* scratch) {
  using T = Accumulate<S>;
  Panel<T> panels[panels_at_once];
  const T* q[panels_at_once];
  T* const scores = scratch;
  T* const wide_k = scores + key_block * panel_rows<T>;
  T* const wide_v = wide_k + key_block * g.head_dim;
  T* memory = wide_v + key_block * g.value_dim;
  int count = 0;
  int64_t keys_seen = 0;
  const int64_t width = even_panel<T>(last - first);
  for (int64_t row = first; row < last; row += width) {
    Panel<T>& panel = panels[count];
    q[count++] = memory;
    panel.out = memory + panel_rows<T> * g.head_dim;
    start_panel<S, T>(g, kv_head, row, min(last, row + width), panel);
    pack_queries<S, T>(g, batch, panel, memory);
    memory += panel_rows<T> * (g.head_dim + g.value_dim);
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
      if (panel.vectors == 1) panel_step<S, T, 1>(g, batch, panel, q[i], key, keys, kb, k_row, vb, v_row, scores);
      if (panel.vectors == 2) panel_step<S, T, 2>(g, batch, panel, q[i], key, keys, kb, k_row, vb, v_row, scores);
      if constexpr (tile_vectors >= 3)
        if (panel.vectors == 3) panel_step<S, T, 3>(g, batch, panel, q[i], key, keys, kb, k_row, vb, v_row, scores);
    }
  }
  for (int i = 0; i < count; ++i) finish_panel<S, T>(g, batch, panels[i]);
}

// With few query rows most lanes would be idle. Then the lanes run along the head, as the rows lie in memory.
template <class T>
constexpr int rows_together = lanes<T> < 4 ? lanes<T> : 4;

// bfloat16 numbers are widened in pairs from 32-bit words; even and odd ones stay apart in registers, and the queries and
// the output are kept in the same order: of each 2 * lanes numbers the even ones first.
template <class S>
constexpr int words = 1;
template <>
constexpr int words<BFloat16> = 2;

template <class S>
CALQUE_INLINE void load_split(const S* p, Vec<Accumulate<S>> (&v)[words<S>]) {
  if constexpr (words<S> == 2) {
    Vec<uint32_t> u;
    std::memcpy(&u, p, sizeof u);
    v[0] = reinterpret_cast<Vec<float>>(u << 16);
    v[1] = reinterpret_cast<Vec<float>>(u & 0xffff0000U);
  } else {
    v[0] = load_wide(p);
  }
}

/// Where number d of a head is kept.
template <class S>
CALQUE_INLINE int64_t split_place(int64_t d, int64_t dim) {
  constexpr int64_t stretch = words<S> * lanes<Accumulate<S>>;
  if (words<S> == 1 || d >= dim / stretch * stretch) return d;
  return d / stretch * stretch + d % 2 * lanes<Accumulate<S>> + d % stretch / 2;
}

/// scores[r][i] = q[r] . k[i] for K keys, R * K <= lanes of them being one vector of sums.
template <class S, class T, int R, int K>
void score_few(const Attention<S>& g, const T* q, const S* k, T* scores, int64_t scores_row) {
  constexpr int L = lanes<T>, stretch = words<S> * L;
  const int64_t dim = g.head_dim, row = g.k_strides[2];
  Vec<T> part[L] = {};
  int64_t d = 0;
  for (; d + stretch <= dim; d += stretch) {
    Vec<T> x[R][words<S>];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int w = 0; w < words<S>; ++w) x[r][w] = load(q + r * dim + d + w * L);
#pragma GCC unroll 16
    for (int i = 0; i < K; ++i) {
      Vec<T> kv[words<S>];
      load_split(k + i * row + d, kv);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int w = 0; w < words<S>; ++w) part[r * K + i] = fma(kv[w], x[r][w], part[r * K + i]);
    }
  }
  T sums[L];
  store(sums, sum_each<T>(part));
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < K; ++i) {
      T sum = sums[r * K + i];
      for (int64_t e = d; e < dim; ++e) sum += widen(k[i * row + e]) * q[r * dim + e];
      scores[r * scores_row + i] = sum;
    }
}

/// out[r] += sum over keys of weights[r][key] * v[key], D registers of the head at a time.
template <class S, class T, int R, int D>
void add_few(const Attention<S>& g, const T* weights, int64_t weights_row, const S* v, int64_t keys, int64_t d, T* out) {
  constexpr int L = lanes<T>, W = words<S>;
  static_assert(D % W == 0);
  Vec<T> total[R][D] = {};
  for (int64_t p = 0; p < keys; ++p) {
    Vec<T> x[D / W][W];
#pragma GCC unroll 8
    for (int i = 0; i < D / W; ++i) load_split(v + p * g.v_strides[2] + d + i * W * L, x[i]);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vec<T> weight = splat(weights[r * weights_row + p]);
#pragma GCC unroll 8
      for (int i = 0; i < D; ++i) total[r][i] = fma(weight, x[i / W][i % W], total[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < D; ++i) {
      T* const o = out + r * g.value_dim + d + i * L;
      store(o, load(o) + total[r][i]);
    }
}

template <class S, int R>
void rows_few(const Attention<S>& g, int64_t batch, int64_t kv_head, int64_t first, Accumulate<S>* scratch) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  T* const q = scratch;
  T* const out = q + R * g.head_dim;
  T* const scores = out + R * g.value_dim;
  T maximum[R], sum[R];
  int64_t position[R], keys_seen = 0;
  for (int r = 0; r < R; ++r) {
    const S* const from = query_row(g, batch, kv_head * g.group + (first + r) / g.q_length, (first + r) % g.q_length);
    for (int64_t d = 0; d < g.head_dim; ++d)
      q[r * g.head_dim + split_place<S>(d, g.head_dim)] = static_cast<T>(g.scale) * widen(from[d]);
    maximum[r] = -infinity<T>;
    sum[r] = 0;
    position[r] = (first + r) % g.q_length;
    if (position[r] >= keys_seen) keys_seen = position[r] + 1;
  }
  std::memset(out, 0, static_cast<size_t>(R * g.value_dim) * sizeof(T));
  if (!g.causal || keys_seen > g.kv_length) keys_seen = g.kv_length;

  const S* const k = g.k + batch * g.k_strides[0] + kv_head * g.k_strides[1];
  const S* const v = g.v + batch * g.v_strides[0] + kv_head * g.v_strides[1];
  for (int64_t key = 0; key < keys_seen; key += key_block) {
    const int64_t keys = min(key_block, keys_seen - key);
    constexpr int K = L / (R == 3 ? 4 : R);
    int64_t p = 0;
    for (; p + K <= keys; p += K) score_few<S, T, R, K>(g, q, k + (key + p) * g.k_strides[2], scores + p, key_block);
    for (; p < keys; ++p) score_few<S, T, R, 1>(g, q, k + (key + p) * g.k_strides[2], scores + p, key_block);
    for (int r = 0; r < R; ++r) {
      T* const s = scores + r * key_block;
      if (g.mask_kind != MaskKind::none) {
        const int64_t head = kv_head * g.group + (first + r) / g.q_length;
        const int64_t start =
            batch * g.mask_strides[0] + head * g.mask_strides[1] + position[r] * g.mask_strides[2] + key * g.mask_strides[3];
        for (p = 0; p < keys; ++p) s[p] += mask_value<S, T>(g, start + p * g.mask_strides[3]);
      }
      int64_t end = keys;
      if (g.causal && position[r] + 1 - key < end) end = position[r] + 1 - key;
      if (end < 0) end = 0;
      const int64_t padded = round_up(keys, L);
      for (p = end; p < padded; ++p) s[p] = -infinity<T>;
      Vec<T> top = splat(maximum[r]);
      for (p = 0; p < padded; p += L) top = max<T>(load(s + p), top);
      T now = maximum[r];
      for (int i = 0; i < L; ++i) now = top[i] > now ? top[i] : now;
      const T base = now == -infinity<T> ? T(0) : now;
      const T factor = exp(splat(maximum[r] - base))[0];
      maximum[r] = now;
      Vec<T> total = {};
      for (p = 0; p < padded; p += L) {
        const Vec<T> weight = exp(load(s + p) - base);
        store(s + p, weight);
        total += weight;
      }
      sum[r] = sum[r] * factor + sum_lanes<T>(total);
      if (factor != 1)
        for (int64_t d = 0; d < g.value_dim; ++d) out[r * g.value_dim + d] *= factor;
    }
    const S* const vb = v + key * g.v_strides[2];
    int64_t d = 0;
    for (; d + 4 * L <= g.value_dim; d += 4 * L) add_few<S, T, R, 4>(g, scores, key_block, vb, keys, d, out);
    for (; d + words<S> * L <= g.value_dim; d += words<S> * L)
      add_few<S, T, R, words<S>>(g, scores, key_block, vb, keys, d, out);
    for (; d < g.value_dim; ++d)
      for (int r = 0; r < R; ++r)
        for (p = 0; p < keys; ++p) out[r * g.value_dim + d] += scores[r * key_block + p] * widen(vb[p * g.v_strides[2] + d]);
  }
  for (int r = 0; r < R; ++r) {
    const int64_t head = kv_head * g.group + (first + r) / g.q_length;
    const T inverse = sum[r] == 0 ? T(0) : 1 / sum[r];
    S* const to = g.out + batch * g.out_strides[0] + head * g.out_strides[1] + position[r] * g.out_strides[2];
    for (int64_t d = 0; d < g.value_dim; ++d) {
      const T value = out[r * g.value_dim + split_place<S>(d, g.value_dim)] * inverse;
      if constexpr (sizeof(S) == sizeof(T))
        to[d] = value;
      else
        to[d] = narrow<S>(value);
    }
    if (g.logsumexp != nullptr)
      g.logsumexp[batch * g.logsumexp_strides[0] + head * g.logsumexp_strides[1] + position[r] * g.logsumexp_strides[2]] =
          sum[r] == 0 ? 0 : maximum[r] + log_of(sum[r]);
  }
}

template <class S>
void rows(const Attention<S>& g, int64_t batch, int64_t kv_head, int64_t first, int64_t last, Accumulate<S>* scratch) {
  constexpr int most = rows_together<Accumulate<S>>;
  const int64_t count = last - first;
  if (count == 1) return rows_few<S, 1>(g, batch, kv_head, first, scratch);
  if (count == 2) return rows_few<S, 2>(g, batch, kv_head, first, scratch);
  if constexpr (most >= 3)
    if (count == 3) return rows_few<S, 3>(g, batch, kv_head, first, scratch);
  if constexpr (most >= 4)
    if (count == 4) return rows_few<S, 4>(g, batch, kv_head, first, scratch);
  rows_in_lanes<S>(g, batch, kv_head, first, last, scratch);
}

template <class S>
int64_t scratch_numbers(int64_t head_dim, int64_t value_dim) {
  using T = Accumulate<S>;
  return key_block * (panel_rows<T> + head_dim + value_dim) + panels_at_once * panel_rows<T> * (head_dim + value_dim);
}

template <class S>
constexpr AttentionKernels<S> attention_kernels = {rows<S>, scratch_numbers<S>, panels_at_once* panel_rows<Accumulate<S>>,
                                                   panel_rows<Accumulate<S>>};

}  // namespace

namespace CALQUE_ISA {
const AttentionKernels<float> attention_float = attention_kernels<float>;
const AttentionKernels<double> attention_double = attention_kernels<double>;
const AttentionKernels<BFloat16> attention_bfloat16 = attention_kernels<BFloat16>;
const AttentionKernels<Half> attention_half = attention_kernels<Half>;
}  // namespace CALQUE_ISA

}  // namespace calque
