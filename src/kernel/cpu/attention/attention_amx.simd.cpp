// bfloat16 attention on AMX tiles, with the query rows along the tile columns. Keys are loaded where they lie; the values of a
// block of keys are transposed once for all panels of rows; scores are float32 and the weights are rounded to bfloat16 in
// pairs of keys, which is how a tile wants them.
#include "kernel/cpu/attention/attention_panel.h"

#if defined(CALQUE_ISA_avx512)

#include "kernel/cpu/simd/amx.h"

namespace calque {
namespace {

constexpr int amx_panels_at_once = 4;
constexpr int64_t tile_k = 32;
constexpr int64_t width_most = panel_rows<float>;
static_assert(key_block % tile_k == 0 && tile_vectors == 3);

/// c[32, V * 16] (+)= a[32, 32 * k_tiles] * b, where b has pairs along k: row p of it holds k = 2p and 2p + 1.
template <int V>
void multiply(int64_t k_tiles, const BFloat16* a, int64_t a_row, const uint32_t* b, float* c, bool add) {
  constexpr int64_t b_bytes = V * 64, c_bytes = V * 64, width = V * 16;
  float* const lower = c + 16 * width;
  if (add) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(3, lower, c_bytes);
    if constexpr (V > 1) {
      _tile_loadd(1, c + 16, c_bytes);
      _tile_loadd(4, lower + 16, c_bytes);
    }
    if constexpr (V > 2) {
      _tile_loadd(2, c + 32, c_bytes);
      _tile_loadd(5, lower + 32, c_bytes);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  }
  const BFloat16* const a2 = a + 16 * a_row;
  for (int64_t t = 0; t < k_tiles; ++t, b += 16 * width) {
    _tile_loadd(6, a + t * tile_k, a_row * 2);
    _tile_loadd(7, b, b_bytes);
    _tile_dpbf16ps(0, 6, 7);
    if constexpr (V > 1) {
      _tile_loadd(7, b + 16, b_bytes);
      _tile_dpbf16ps(1, 6, 7);
    }
    if constexpr (V > 2) {
      _tile_loadd(7, b + 32, b_bytes);
      _tile_dpbf16ps(2, 6, 7);
    }
    _tile_loadd(6, a2 + t * tile_k, a_row * 2);
    if constexpr (V > 2) {
      _tile_dpbf16ps(5, 6, 7);
      _tile_loadd(7, b + 16, b_bytes);
    }
    if constexpr (V > 1) {
      _tile_dpbf16ps(4, 6, 7);
      _tile_loadd(7, b, b_bytes);
    }
    _tile_dpbf16ps(3, 6, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(3, lower, c_bytes);
  if constexpr (V > 1) {
    _tile_stored(1, c + 16, c_bytes);
    _tile_stored(4, lower + 16, c_bytes);
  }
  if constexpr (V > 2) {
    _tile_stored(2, c + 32, c_bytes);
    _tile_stored(5, lower + 32, c_bytes);
  }
}

/// Query rows as pairs along the head, zero padded: out[p * width + i].
void pack_queries(const Attention<BFloat16>& g, int64_t batch, const Panel<float>& panel, int64_t dim, uint32_t* out) {
  const int64_t width = panel.vectors * 16;
  for (int64_t j = 0; j < width; j += 16) {
    const BFloat16* from[16] = {};
    const int64_t here = min(16, panel.rows - j);
    for (int64_t i = 0; i < here; ++i) from[i] = query_row(g, batch, panel.head[j + i], panel.place[j + i]);
    for (int64_t d = 0; d < dim; d += tile_k) {
      Vec<float> v[16] = {};
      const int64_t count = min(tile_k, g.head_dim - d);
      for (int64_t i = 0; i < here; ++i) std::memcpy(&v[i], &from[i][d].bits, static_cast<size_t>(count) * 2);
      transpose<float>(v);
#pragma GCC unroll 16
      for (int p = 0; p < 16; ++p) std::memcpy(out + (d / 2 + p) * width + j, &v[p], sizeof v[p]);
    }
  }
}

/// out[d * key_block + key] = v[key][d] for a block of keys, zero padded to `dim` and to whole tiles of keys.
void transpose_values(const Attention<BFloat16>& g, const BFloat16* v, int64_t keys, int64_t dim, BFloat16* out) {
  const int64_t row = g.v_strides[2];
  for (int64_t key = 0; key < keys; key += tile_k)
    for (int64_t d = 0; d < dim; d += 16) {
      Vec<float> pairs[16];
      const auto bytes = static_cast<size_t>(d < g.value_dim ? min(16, g.value_dim - d) : 0) * 2;
#pragma GCC unroll 1
      for (int p = 0; p < 16; ++p) {
        VecU16Half even = {}, odd = {};
        const BFloat16* const from = v + (key + 2 * p) * row + d;
        if (bytes == 32 && key + 2 * p + 1 < keys) {
          std::memcpy(&even, &from->bits, 32);
          std::memcpy(&odd, &from[row].bits, 32);
        } else {
          if (key + 2 * p < keys) std::memcpy(&even, &from->bits, bytes);
          if (key + 2 * p + 1 < keys) std::memcpy(&odd, &from[row].bits, bytes);
        }
        pairs[p] = reinterpret_cast<Vec<float>>(__builtin_convertvector(even, Vec<uint32_t>) |
                                                __builtin_convertvector(odd, Vec<uint32_t>) << 16);
      }
      transpose<float>(pairs);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) std::memcpy(&out[(d + i) * key_block + key].bits, &pairs[i], 64);
    }
}

/// Keys copied when a whole tile of them could not be read in place.
void copy_keys(const Attention<BFloat16>& g, const BFloat16* k, int64_t keys, int64_t dim, BFloat16* out) {
  const int64_t padded = round_up(keys, tile_k);
  std::memset(&out->bits, 0, static_cast<size_t>(padded * dim) * 2);
  for (int64_t i = 0; i < keys; ++i)
    std::memcpy(&out[i * dim].bits, &k[i * g.k_strides[2]].bits, static_cast<size_t>(g.head_dim) * 2);
}

/// e^x for x <= 0 to about 2e-6, which is well below the rounding of the weights; 0 where the result would not be a normal
/// number, since those are slow. NaN stays NaN.
CALQUE_INLINE Vec<float> exp_weight(Vec<float> x) {
  const __m512 low = _mm512_set1_ps(-87.0F);
  const __m512 bounded = _mm512_max_ps(low, x);
  const __m512 n = _mm512_roundscale_ps(bounded * 0x1.715476p0F, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e430p-1F), bounded);
  const Vec<float> p = exp_series(r, splat(1.0F / 120));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), p, n);
}

/// Nearest bfloat16, in the low half. Weights are in [0, 1] or NaN with its low bits clear, so nothing overflows.
CALQUE_INLINE Vec<uint32_t> round_weight(Vec<float> x) {
  const Vec<uint32_t> u = reinterpret_cast<Vec<uint32_t>>(x);
  return (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
}

/// Scores become weights in pairs of keys, zero padded to whole tiles.
template <int V>
void weigh(Panel<float>& panel, int64_t value_dim, int64_t keys, const float* scores, float scale, uint32_t* weights) {
  const Step<float, V> step = raise_maximum<float, V>(panel, keys, scores, scale);
  const Vec<float> factor = splat(scale);
  Vec<float> sum[V] = {};
  int64_t p = 0;
  for (; p + 2 <= keys; p += 2)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      const Vec<float> even = exp_weight(fma(load(scores + (p * V + j) * 16), factor, -step.base[j]));
      const Vec<float> odd = exp_weight(fma(load(scores + ((p + 1) * V + j) * 16), factor, -step.base[j]));
      sum[j] += even + odd;
      store(weights + (p / 2 * V + j) * 16, round_weight(even) | round_weight(odd) << 16);
    }
  for (; p < round_up(keys, tile_k); p += 2)
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      Vec<float> even = {};
      if (p < keys) even = exp_weight(fma(load(scores + (p * V + j) * 16), factor, -step.base[j]));
      sum[j] += even;
      store(weights + (p / 2 * V + j) * 16, round_weight(even));
    }
  rescale<float, V>(panel, value_dim, step, sum);
}

struct Buffers {
  float* scores;
  uint32_t* weights;
  BFloat16 *keys, *values;
};

template <int V>
void panel_step(const Attention<BFloat16>& g, int64_t batch, Panel<float>& panel, const uint32_t* q, int64_t dim,
                int64_t value_dim, int64_t key, int64_t keys, const BFloat16* k, int64_t k_row, const Buffers& buffers) {
  const int64_t padded = round_up(keys, tile_k);
  constexpr int64_t width = V * 16;
  for (int64_t p = 0; p < padded; p += 32)
    multiply<V>(dim / tile_k, k + p * k_row, k_row, q, buffers.scores + p * width, false);
  auto scale = static_cast<float>(g.scale);
  const bool masked = g.mask_kind != MaskKind::none;
  if (masked || !(scale > 0)) {
    for (int64_t i = 0; i < keys * width; i += 16) store(buffers.scores + i, load(buffers.scores + i) * scale);
    scale = 1;
  }
  if (masked) add_mask<BFloat16, float>(g, batch, panel, key, keys, buffers.scores);
  if (g.causal && key + keys - 1 > panel.least_position) apply_causal(panel, key, keys, buffers.scores);
  weigh<V>(panel, g.value_dim, keys, buffers.scores, scale, buffers.weights);
  for (int64_t d = 0; d < value_dim; d += 32)
    multiply<V>(padded / tile_k, buffers.values + d * key_block, key_block, buffers.weights, panel.out + d * width, true);
}

int64_t padded_dim(int64_t dim) { return round_up(dim, 32); }

int64_t amx_scratch_numbers(int64_t head_dim, int64_t value_dim) {
  const int64_t dim = padded_dim(head_dim), out_dim = padded_dim(value_dim);
  const int64_t lanes = avx512::attention_bfloat16.scratch_numbers(head_dim, value_dim);
  const int64_t own = key_block * width_most + key_block / 2 * width_most + key_block * (dim + out_dim) / 2 +
                      amx_panels_at_once * width_most * (dim / 2 + out_dim);
  return own > lanes ? own : lanes;
}

void rows(const Attention<BFloat16>& g, int64_t batch, int64_t kv_head, int64_t first, int64_t last, float* scratch) {
  if (last - first <= 4) return avx512::attention_bfloat16.rows(g, batch, kv_head, first, last, scratch);
  const int64_t dim = padded_dim(g.head_dim), value_dim = padded_dim(g.value_dim);
  Buffers buffers;
  buffers.scores = scratch;
  buffers.weights = reinterpret_cast<uint32_t*>(scratch + key_block * width_most);
  buffers.keys = reinterpret_cast<BFloat16*>(buffers.weights + key_block / 2 * width_most);
  buffers.values = buffers.keys + key_block * dim;
  float* memory = reinterpret_cast<float*>(buffers.values + key_block * value_dim);

  Panel<float> panels[amx_panels_at_once];
  uint32_t* q[amx_panels_at_once];
  int count = 0;
  int64_t keys_seen = 0;
  const int64_t width = even_panel<float>(last - first);
  for (int64_t row = first; row < last; row += width) {
    Panel<float>& panel = panels[count];
    panel.out = memory;
    memory += width_most * value_dim;
    start_panel<BFloat16, float>(g, kv_head, row, min(last, row + width), panel);
    const int64_t used = panel.vectors * 16 * g.value_dim;
    std::memset(panel.out + used, 0, static_cast<size_t>(panel.vectors * 16 * value_dim - used) * sizeof(float));
    q[count] = reinterpret_cast<uint32_t*>(memory);
    memory += width_most * dim / 2;
    pack_queries(g, batch, panel, dim, q[count++]);
    if (panel.last_position >= keys_seen) keys_seen = panel.last_position + 1;
  }
  if (!g.causal || keys_seen > g.kv_length) keys_seen = g.kv_length;

  const BFloat16* const k = g.k + batch * g.k_strides[0] + kv_head * g.k_strides[1];
  const BFloat16* const v = g.v + batch * g.v_strides[0] + kv_head * g.v_strides[1];
  {
    const Tiles tiles;
    for (int64_t key = 0; key < keys_seen; key += key_block) {
      const int64_t block = min(key_block, keys_seen - key);
      const BFloat16* kb = k + key * g.k_strides[2];
      int64_t k_row = g.k_strides[2];
      if (dim != g.head_dim || key + round_up(block, tile_k) > g.kv_length) {
        copy_keys(g, kb, block, dim, buffers.keys);
        kb = buffers.keys;
        k_row = dim;
      }
      transpose_values(g, v + key * g.v_strides[2], block, value_dim, buffers.values);
      for (int i = 0; i < count; ++i) {
        Panel<float>& panel = panels[i];
        const int64_t keys = g.causal ? min(block, panel.last_position + 1 - key) : block;
        if (keys <= 0) continue;
        const auto step = panel.vectors == 1 ? panel_step<1> : panel.vectors == 2 ? panel_step<2> : panel_step<3>;
        step(g, batch, panel, q[i], dim, value_dim, key, keys, kb, k_row, buffers);
      }
    }
  }
  for (int i = 0; i < count; ++i) finish_panel<BFloat16, float>(g, batch, panels[i]);
}

}  // namespace

namespace avx512 {
const AttentionKernels<BFloat16> attention_amx = {rows, amx_scratch_numbers, amx_panels_at_once* width_most, width_most};
}  // namespace avx512

}  // namespace calque

#endif
