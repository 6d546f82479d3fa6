// Packing the columns of a convolution straight from the image. For *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm_block.h"
#include "kernel/cpu/gemm_finish.h"
#include "kernel/cpu/vec.h"

namespace calque {
namespace {

template <class S>
CALQUE_INLINE void copy_number(S from, S& to) {
  to = from;
}
template <class S>
CALQUE_INLINE void copy_number(S from, float& to) {
  to = widen(from);
}
CALQUE_INLINE void copy_number(float from, float& to) { to = from; }

/// out[i] = from[i * step] for i < count.
template <class S, class T>
CALQUE_INLINE void copy_run(int64_t count, const S* from, int64_t step, T* out) {
  if (step == 1) {
    int64_t i = 0;
    if constexpr (sizeof(S) != sizeof(T) || sizeof(S) >= 4)
      for (; i + lanes<T> <= count; i += lanes<T>) store(out + i, load_wide(from + i));
    for (; i < count; ++i) copy_number(from[i], out[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) copy_number(from[i * step], out[i]);
  }
}

template <class T>
CALQUE_INLINE void zero_run(int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = T();
}

/// out[p * width + j] = rows k0 + p of the patches first + j for j < count, 0 for count <= j < width. T is S or float.
template <class S, class T>
void pack_patches(const Patches<S>& g, int64_t k0, int64_t k, int64_t first, int64_t count, int64_t width, T* out) {
  // The columns as runs along the width of the output, with the tap-independent part of where they start.
  struct Run {
    int64_t depth, height, start, column, length;
  };
  constexpr int64_t most = 64;
  Run runs[most];
  int64_t run_count = 0;
  for (int64_t j = 0; j < count;) {
    const int64_t x = (first + j) % g.out_size[2], rest = (first + j) / g.out_size[2];
    const int64_t length = min(count - j, g.out_size[2] - x);
    runs[run_count++] = {rest / g.out_size[1] * g.step[0], rest % g.out_size[1] * g.step[1], x * g.step[2], j, length};
    j += length;
  }
  int64_t x = k0 % g.taps[2], y = k0 / g.taps[2] % g.taps[1], z = k0 / (g.taps[2] * g.taps[1]) % g.taps[0];
  const S* channel = g.image + k0 / (g.taps[2] * g.taps[1] * g.taps[0]) * g.channel_stride;
  const int64_t step = g.step[2];
  for (int64_t p = 0; p < k; ++p, out += width) {
    const int64_t dz = g.tap_offset[0][z], dy = g.tap_offset[1][y], dx = g.tap_offset[2][x];
    for (int64_t r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      T* const to = out + run.column;
      const int64_t depth = run.depth + dz, height = run.height + dy, start = run.start + dx;
      if (depth < 0 || depth >= g.size[0] || height < 0 || height >= g.size[1]) {
        zero_run(run.length, to);
        continue;
      }
      const S* const line = channel + depth * g.stride[0] + height * g.stride[1];
      const int64_t last = start + (run.length - 1) * step;
      if (start >= 0 && last < g.size[2]) {
        copy_run(run.length, line + start, step, to);
        continue;
      }
      // Those before the image, in it, and after it.
      const int64_t before = start >= 0 ? 0 : min(run.length, (-start + step - 1) / step);
      const int64_t room = g.size[2] - start;
      const int64_t end = room <= 0 ? before : min(run.length, (room + step - 1) / step);
      zero_run(before, to);
      if (end > before) copy_run(end - before, line + start + before * step, step, to + before);
      const int64_t done = end > before ? end : before;
      zero_run(run.length - done, to + done);
    }
    zero_run(width - count, out + count);
    if (++x < g.taps[2]) continue;
    x = 0;
    if (++y < g.taps[1]) continue;
    y = 0;
    if (++z < g.taps[0]) continue;
    z = 0;
    channel += g.channel_stride;
  }
}

}  // namespace
}  // namespace calque
