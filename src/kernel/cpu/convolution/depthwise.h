// Depthwise convolution: one channel, one kernel, where a matrix multiplication would have a single row. The channel is first
// copied with its padding, split by position modulo the step, so that every tap of a vector of outputs is one plain load.
// For *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm/gemm_block.h"
#include "kernel/cpu/gemm/gemm_finish.h"
#include "kernel/cpu/simd/vec.h"

namespace calque {
namespace {

/// The padded copy: [depth, height, step of the width, width / step], from image position `least` on in each dimension.
struct Padded {
  int64_t least[3], size[3];
  int64_t phases, phase_width;

  template <class S>
  explicit Padded(const Patches<S>& g) {
    for (int d = 0; d < 3; ++d) {
      int64_t most = least[d] = g.tap_offset[d][0];
      for (int64_t t = 1; t < g.taps[d]; ++t) {
        least[d] = min(least[d], g.tap_offset[d][t]);
        if (g.tap_offset[d][t] > most) most = g.tap_offset[d][t];
      }
      size[d] = (g.out_size[d] - 1) * g.step[d] + most - least[d] + 1;
    }
    phases = g.step[2];
    // A vector of outputs may read up to a vector past the last one that counts.
    phase_width = (size[2] + phases - 1) / phases + lanes<Accumulate<S>>;
  }
  int64_t line() const { return phases * phase_width; }
  int64_t numbers() const { return size[0] * size[1] * line(); }
};

template <class S>
int64_t depthwise_numbers(const Patches<S>& g) {
  // The copy, the weights, and an offset for each.
  const int64_t taps = g.taps[0] * g.taps[1] * g.taps[2];
  return round_up(Padded(g).numbers(), lanes<Accumulate<S>>) + round_up(taps, lanes<Accumulate<S>>) + 2 * taps;
}

template <class S, class T>
void fill_padded(const Patches<S>& g, const Padded& padded, T* out) {
  std::memset(out, 0, static_cast<size_t>(padded.numbers()) * sizeof(T));
  for (int64_t z = 0; z < padded.size[0]; ++z)
    for (int64_t y = 0; y < padded.size[1]; ++y) {
      const int64_t depth = z + padded.least[0], height = y + padded.least[1];
      if (depth < 0 || depth >= g.size[0] || height < 0 || height >= g.size[1]) continue;
      const S* const from = g.image + depth * g.stride[0] + height * g.stride[1];
      T* const to = out + (z * padded.size[1] + y) * padded.line();
      const int64_t first = padded.least[2] < 0 ? -padded.least[2] : 0;
      const int64_t last = min(padded.size[2], g.size[2] - padded.least[2]);
      if (padded.phases == 1) {
        int64_t x = first;
        for (; x + lanes<T> <= last; x += lanes<T>) store(to + x, load_wide(from + padded.least[2] + x));
        for (; x < last; ++x) to[x] = widen(from[padded.least[2] + x]);
      } else {
        int64_t phase = first % padded.phases, place = first / padded.phases;
        for (int64_t x = first; x < last; ++x) {
          to[phase * padded.phase_width + place] = widen(from[padded.least[2] + x]);
          if (++phase == padded.phases) phase = 0, ++place;
        }
      }
    }
}

/// R output lines, each a vector of outputs; `from` is where the first tap of the first output would be.
template <class T, int R>
CALQUE_INLINE void depthwise_tile(int64_t taps, const T* weight, const int64_t* offsets, const T* from, int64_t line_step,
                                  T bias, Vec<T> (&total)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) total[r] = splat(bias);
  for (int64_t t = 0; t < taps; ++t) {
    const Vec<T> w = splat(weight[t]);
    const T* const at = from + offsets[t];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) total[r] = fma(load(at + r * line_step), w, total[r]);
  }
}

template <class S, class T>
CALQUE_INLINE void store_outputs(int64_t count, Vec<T> v, S* out, int64_t out_col) {
  if (count >= lanes<T> && out_col == 1) {
    store_narrow(out, v);
    return;
  }
  S numbers[lanes<T>];
  store_narrow(numbers, v);
  for (int64_t i = 0; i < min(count, lanes<T>); ++i) out[i * out_col] = numbers[i];
}

template <class S>
void depthwise(const Patches<S>& g, const S* weight, Accumulate<S> bias, S* out, int64_t out_col, Accumulate<S>* scratch) {
  using T = Accumulate<S>;
  constexpr int L = lanes<T>, lines_at_once = 4;
  const Padded padded(g);
  const int64_t taps = g.taps[0] * g.taps[1] * g.taps[2];
  fill_padded<S, T>(g, padded, scratch);
  T* const weights = scratch + round_up(padded.numbers(), L);
  auto* const offsets = reinterpret_cast<int64_t*>(weights + round_up(taps, L));
  int64_t t = 0;
  for (int64_t z = 0; z < g.taps[0]; ++z)
    for (int64_t y = 0; y < g.taps[1]; ++y)
      for (int64_t x = 0; x < g.taps[2]; ++x, ++t) {
        weights[t] = widen(weight[t]);
        const int64_t column = g.tap_offset[2][x] - padded.least[2];
        offsets[t] = ((g.tap_offset[0][z] - padded.least[0]) * padded.size[1] + g.tap_offset[1][y] - padded.least[1]) *
                         padded.line() +
                     column % padded.phases * padded.phase_width + column / padded.phases;
      }
  const int64_t line_step = g.step[1] * padded.line();
  for (int64_t z = 0; z < g.out_size[0]; ++z)
    for (int64_t y = 0; y < g.out_size[1]; y += lines_at_once) {
      const int64_t lines = min(lines_at_once, g.out_size[1] - y);
      const T* const from = scratch + z * g.step[0] * padded.size[1] * padded.line() + y * line_step;
      S* const to = out + (z * g.out_size[1] + y) * g.out_size[2] * out_col;
      for (int64_t x = 0; x < g.out_size[2]; x += L) {
        const int64_t count = g.out_size[2] - x;
        if (lines == lines_at_once) {
          Vec<T> total[lines_at_once];
          depthwise_tile<T, lines_at_once>(taps, weights, offsets, from + x, line_step, bias, total);
          for (int r = 0; r < lines_at_once; ++r)
            store_outputs<S, T>(count, total[r], to + (r * g.out_size[2] + x) * out_col, out_col);
        } else {
          for (int64_t r = 0; r < lines; ++r) {
            Vec<T> total[1];
            depthwise_tile<T, 1>(taps, weights, offsets, from + x + r * line_step, line_step, bias, total);
            store_outputs<S, T>(count, total[0], to + (r * g.out_size[2] + x) * out_col, out_col);
          }
        }
      }
    }
}

}  // namespace
}  // namespace calque
