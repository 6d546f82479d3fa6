// Convolution of one channel with one kernel, the depthwise case, where a matrix multiplication would have a single row.
// For *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm_block.h"
#include "kernel/cpu/gemm_finish.h"
#include "kernel/cpu/vec.h"

namespace calque {
namespace {

/// Every second number, from p on. Reads 2 * lanes numbers.
CALQUE_INLINE Vec<float> load_even(const float* p) {
  const Vec<float> a = load(p), b = load(p + lanes<float>);
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}
template <class S>
CALQUE_INLINE Vec<Accumulate<S>> load_even(const S* p) {
  Vec<Accumulate<S>> v = {};
  for (int i = 0; i < lanes<Accumulate<S>>; ++i) v[i] = widen(p[2 * i]);
  return v;
}

template <class S>
CALQUE_INLINE S rounded(Accumulate<S> x) {
  if constexpr (sizeof(S) == sizeof(Accumulate<S>))
    return x;
  else
    return narrow<S>(x);
}

/// Outputs x .. x_end of one output line: `lines` are the image lines under its taps (null: outside), line_weights theirs.
template <class S>
void convolve_line(const Patches<S>& g, int64_t line_count, const S* const* lines, const S* const* line_weights,
                   Accumulate<S> bias, int64_t x, int64_t x_end, S* out, int64_t out_col) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>;
  const int64_t step = g.step[2], taps = g.taps[2], width = g.size[2];
  const int64_t* const offsets = g.tap_offset[2];
  int64_t least = 0, most = 0;
  for (int64_t t = 0; t < taps; ++t) {
    if (t == 0 || offsets[t] < least) least = offsets[t];
    if (t == 0 || offsets[t] > most) most = offsets[t];
  }
  while (x < x_end) {
    // A vector of outputs when all that it reads lies in the line.
    const int64_t first = x * step;
    const bool inside = x + L <= x_end && first + least >= 0 && first + most + L * step <= width;
    if (out_col == 1 && step <= 2 && inside) {
      Vec<T> total = splat(bias);
      for (int64_t i = 0; i < line_count; ++i) {
        const S* const line = lines[i] + first;
        for (int64_t t = 0; t < taps; ++t) {
          const Vec<T> v = step == 1 ? load_wide(line + offsets[t]) : load_even(line + offsets[t]);
          total = fma(v, splat<T>(widen(line_weights[i][t])), total);
        }
      }
      store_narrow(out + x, total);
      x += L;
      continue;
    }
    T total = bias;
    for (int64_t i = 0; i < line_count; ++i)
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t at = first + offsets[t];
        if (at >= 0 && at < width) total += widen(lines[i][at]) * widen(line_weights[i][t]);
      }
    out[x * out_col] = rounded<S>(total);
    ++x;
  }
}

template <class S>
void single_channel(const Patches<S>& g, const S* weight, Accumulate<S> bias, int64_t first, int64_t last, S* out,
                    int64_t out_col) {
  constexpr int64_t most_lines = 64;
  const S* lines[most_lines];
  const S* weights[most_lines];
  while (first < last) {
    const int64_t x = first % g.out_size[2], line = first / g.out_size[2];
    const int64_t x_end = min(g.out_size[2], x + last - first);
    const int64_t oy = line % g.out_size[1], oz = line / g.out_size[1];
    int64_t count = 0;
    for (int64_t z = 0; z < g.taps[0]; ++z)
      for (int64_t y = 0; y < g.taps[1]; ++y) {
        const int64_t depth = oz * g.step[0] + g.tap_offset[0][z], height = oy * g.step[1] + g.tap_offset[1][y];
        if (depth < 0 || depth >= g.size[0] || height < 0 || height >= g.size[1]) continue;
        lines[count] = g.image + depth * g.stride[0] + height * g.stride[1];
        weights[count++] = weight + (z * g.taps[1] + y) * g.taps[2];
      }
    convolve_line(g, count, lines, weights, bias, x, x_end, out + line * g.out_size[2] * out_col, out_col);
    first += x_end - x;
  }
}

}  // namespace
}  // namespace calque
