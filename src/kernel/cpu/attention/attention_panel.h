// What the attention kernels share, for *.simd.cpp files only: a panel of query rows and its softmax.
//
// Everything is kept with the query row as the vector lane: scores are [key, row], running maximum and sum one vector per
// lanes of rows, the output [value dim, row]. So the softmax needs no sums across lanes, keys and values are read where they
// lie, and only the queries are transposed going in and the output coming out.
#pragma once

#include <type_traits>

#include "kernel/cpu/attention/attention_block.h"
#include "kernel/cpu/gemm/gemm_tile.h"
#include "kernel/cpu/simd/vec.h"
#include "kernel/cpu/simd/vec_exp.h"

namespace calque {
namespace {

constexpr int64_t key_block = 128;
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
  int64_t rows;  // in use
  int64_t vectors;
  T* out;                        // [value_dim, vectors * lanes]
  T maximum[panel_rows<T>];      // of the scores so far
  T sum[panel_rows<T>];          // of exp(score - maximum)
  T position[panel_rows<T>];     // of each row in its head, as a number to compare with
  int64_t head[panel_rows<T>];   // of each row in use
  int64_t place[panel_rows<T>];  // its position again, as an integer
  int64_t least_position, last_position;
};

/// Rows of each panel when `rows` of them are cut evenly, in whole vectors. Under the causal mask an early panel then needs few keys.
template <class T>
int64_t even_panel(int64_t rows) {
  const int64_t panels = (rows + panel_rows<T> - 1) / panel_rows<T>;
  return round_up((rows + panels - 1) / panels, lanes<T>);
}

/// Where the numbers of one query row begin.
template <class S>
const S* query_row(const Attention<S>& g, int64_t batch, int64_t head, int64_t place) {
  return g.q + batch * g.q_strides[0] + head * g.q_strides[1] + place * g.q_strides[2];
}

template <class S, class T>
void start_panel(const Attention<S>& g, int64_t kv_head, int64_t first, int64_t last, Panel<T>& panel) {
  constexpr int L = lanes<T>;
  panel.rows = min(panel_rows<T>, last - first);
  panel.vectors = (panel.rows + L - 1) / L;
  const int64_t width = panel.vectors * L;
  panel.least_position = g.q_length;
  panel.last_position = 0;
  int64_t head = kv_head * g.group + first / g.q_length, place = first % g.q_length;
  for (int64_t i = 0; i < width; ++i) {
    panel.maximum[i] = -infinity<T>;
    panel.sum[i] = 0;
    panel.position[i] = 0;
    if (i >= panel.rows) continue;
    panel.head[i] = head;
    panel.place[i] = place;
    panel.position[i] = static_cast<T>(place);
    if (place < panel.least_position) panel.least_position = place;
    if (place > panel.last_position) panel.last_position = place;
    if (++place == g.q_length) place = 0, ++head;
  }
  std::memset(panel.out, 0, static_cast<size_t>(g.value_dim * width) * sizeof(T));
}

/// One mask number as something to add to the score.
template <class S, class T>
T mask_value(const Attention<S>& g, int64_t offset) {
  switch (g.mask_kind) {
    case MaskKind::none: return 0;
    case MaskKind::boolean: return static_cast<const uint8_t*>(g.mask)[offset] != 0 ? T(0) : -infinity<T>;
    case MaskKind::additive: return widen(static_cast<const S*>(g.mask)[offset]);
    case MaskKind::additive_float: return static_cast<const float*>(g.mask)[offset];
  }
  return 0;
}

/// A vector of them, from keys that lie next to each other. `kind` is the mask's, known when compiling.
template <class S, class T, MaskKind kind>
CALQUE_INLINE Vec<T> load_mask(const void* mask, int64_t offset) {
  constexpr int L = lanes<T>;
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  if constexpr (kind == MaskKind::boolean) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(mask) + offset));
      return _mm512_maskz_mov_ps(_mm_testn_epi8_mask(bytes, bytes), _mm512_set1_ps(-infinity<float>));
    }
#endif
    typedef uint8_t Bytes __attribute__((vector_size(L)));
    Bytes bytes;
    std::memcpy(&bytes, static_cast<const uint8_t*>(mask) + offset, sizeof bytes);
    return __builtin_convertvector(bytes, Vec<Integer>) != 0 ? Vec<T>{} : splat(-infinity<T>);
  } else if constexpr (kind == MaskKind::additive) {
    return load_wide(static_cast<const S*>(mask) + offset);
  } else {
    typedef float Floats __attribute__((vector_size(L * 4)));
    Floats floats;
    std::memcpy(&floats, static_cast<const float*>(mask) + offset, sizeof floats);
    return __builtin_convertvector(floats, Vec<T>);
  }
}

/// scores[key, row] += mask[row, key].
template <class S, class T, MaskKind kind>
void add_mask_of(const Attention<S>& g, int64_t batch, const Panel<T>& panel, int64_t key, int64_t keys, T* scores) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  const auto offset = [&](int64_t i) {
    return batch * g.mask_strides[0] + panel.head[i] * g.mask_strides[1] + panel.place[i] * g.mask_strides[2] +
           key * g.mask_strides[3];
  };
  const bool one_head = g.mask_strides[1] == 0 || panel.head[0] == panel.head[panel.rows - 1];
  if (g.mask_strides[2] == 0 && one_head) {
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
    int64_t from[L] = {};
    for (int64_t i = 0; i < here; ++i) from[i] = offset(j + i);
    int64_t p = 0;
    if (g.mask_strides[3] == 1)
      for (; p + L <= keys; p += L) {
        // Lanes not in use repeat a row that is; what they hold is never looked at.
        Vec<T> v[L];
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) v[i] = load_mask<S, T, kind>(g.mask, from[i < here ? i : 0] + p);
        transpose<T>(v);
#pragma GCC unroll 16
        for (int c = 0; c < L; ++c) {
          T* const s = scores + (p + c) * width + j;
          store(s, load(s) + v[c]);
        }
      }
    for (; p < keys; ++p)
      for (int64_t i = 0; i < here; ++i) scores[p * width + j + i] += mask_value<S, T>(g, from[i] + p * g.mask_strides[3]);
  }
}

template <class S, class T>
void add_mask(const Attention<S>& g, int64_t batch, const Panel<T>& panel, int64_t key, int64_t keys, T* scores) {
  switch (g.mask_kind) {
    case MaskKind::none: return;
    case MaskKind::boolean: return add_mask_of<S, T, MaskKind::boolean>(g, batch, panel, key, keys, scores);
    case MaskKind::additive: return add_mask_of<S, T, MaskKind::additive>(g, batch, panel, key, keys, scores);
    case MaskKind::additive_float: return add_mask_of<S, T, MaskKind::additive_float>(g, batch, panel, key, keys, scores);
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

/// How a panel goes from the keys before a block to those with it.
template <class T, int V>
struct Step {
  Vec<T> base[V];    // what the block's scores are relative to
  Vec<T> factor[V];  // brings sum and output so far to it
  bool changed;      // whether any factor is not 1
};

/// Moves the panel's maximum up to that of scale * scores; scale must be positive.
template <class T, int V>
Step<T, V> raise_maximum(Panel<T>& panel, int64_t keys, const T* scores, T scale) {
  constexpr int L = lanes<T>;
  constexpr int64_t width = V * L;
  Vec<T> top[2][V];
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) top[0][j] = top[1][j] = splat(-infinity<T>);
  int64_t p = 0;
  for (; p + 2 <= keys; p += 2)
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u)
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) top[u][j] = max<T>(load(scores + (p + u) * width + j * L), top[u][j]);
  if (p < keys)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) top[0][j] = max<T>(load(scores + p * width + j * L), top[0][j]);

  Step<T, V> step;
  step.changed = false;
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) {
    const Vec<T> before = load(panel.maximum + j * L), now = max<T>(max<T>(top[0][j], top[1][j]) * scale, before);
    // A row that has seen no key yet has maximum -infinity; 0 in its place makes every weight 0 instead of NaN.
    step.base[j] = now == -infinity<T> ? Vec<T>{} : now;
    step.factor[j] = exp(before - step.base[j]);
    store(panel.maximum + j * L, now);
    T factors[L];
    store(factors, step.factor[j]);
    for (int i = 0; i < L; ++i) step.changed |= factors[i] != 1;
  }
  return step;
}

template <class T, int V>
void rescale(Panel<T>& panel, int64_t value_dim, const Step<T, V>& step, const Vec<T> (&sum)[V]) {
  constexpr int L = lanes<T>;
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) store(panel.sum + j * L, fma(load(panel.sum + j * L), step.factor[j], sum[j]));
  if (!step.changed) return;
  for (int64_t d = 0; d < value_dim; ++d)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      T* const o = panel.out + (d * V + j) * L;
      store(o, load(o) * step.factor[j]);
    }
}

template <class S, class T>
void finish_panel(const Attention<S>& g, int64_t batch, const Panel<T>& panel) {
  constexpr int L = lanes<T>;
  const int64_t width = panel.vectors * L;
  for (int64_t j = 0; j < panel.rows; j += L) {
    const int64_t here = min(L, panel.rows - j);
    const Vec<T> sum = load(panel.sum + j);
    const Vec<T> inverse = sum == 0 ? Vec<T>{} : 1 / sum;
    S* out[L] = {};
    for (int64_t i = 0; i < here; ++i) {
      const int64_t position = panel.place[j + i], head = panel.head[j + i];
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

}  // namespace
}  // namespace calque
