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

#if defined(__AVX512F__)
/// As pack_patches, for float: columns in pieces of one output line and at most a vector, and for every piece and tap along
/// the width a mask of the lanes that lie in the image, so that the inner loop has no decisions but whether a line exists.
inline void pack_patches_masked(const Patches<float>& g, int64_t k0, int64_t k, int64_t first, int64_t count, int64_t width,
                                float* out) {
  struct Piece {
    int64_t depth, height, start, column;
    __mmask16 lanes;
  };
  Piece pieces[48];
  int64_t piece_count = 0;
  for (int64_t j = 0; j < count;) {
    const int64_t x = (first + j) % g.out_size[2], rest = (first + j) / g.out_size[2];
    const int64_t length = min(min(count - j, g.out_size[2] - x), 16);
    pieces[piece_count++] = {rest / g.out_size[1] * g.step[0], rest % g.out_size[1] * g.step[1], x * g.step[2], j,
                             static_cast<__mmask16>((1U << length) - 1U)};
    j += length;
  }
  // The lanes past the last column are 0 in every row.
  pieces[piece_count - 1].lanes = static_cast<__mmask16>(0xffffU >> (16 - min(16, width - pieces[piece_count - 1].column)));
  const int64_t filled = min(width, pieces[piece_count - 1].column + 16);
  const __m512i steps = _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(g.step[2])),
                                           _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  const __m512i columns = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i evens = _mm512_slli_epi32(columns, 1);
  const __m512i size = _mm512_set1_epi32(static_cast<int>(g.size[2]));
  int64_t x = k0 % g.taps[2], y = k0 / g.taps[2] % g.taps[1], z = k0 / (g.taps[2] * g.taps[1]) % g.taps[0];
  const float* channel = g.image + k0 / (g.taps[2] * g.taps[1] * g.taps[0]) * g.channel_stride;
  for (int64_t p = 0; p < k; ++p, out += width) {
    const int64_t dz = g.tap_offset[0][z], dy = g.tap_offset[1][y], dx = g.tap_offset[2][x];
    for (int64_t r = 0; r < piece_count; ++r) {
      const Piece& piece = pieces[r];
      const int64_t depth = piece.depth + dz, height = piece.height + dy, start = piece.start + dx;
      const bool exists = static_cast<uint64_t>(depth) < static_cast<uint64_t>(g.size[0]) &&
                          static_cast<uint64_t>(height) < static_cast<uint64_t>(g.size[1]);
      __m512 v = _mm512_setzero_ps();
      if (exists) {
        const float* const line = channel + depth * g.stride[0] + height * g.stride[1] + start;
        const __m512i at = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(start)), steps);
        const __mmask16 own = r + 1 == piece_count ? static_cast<__mmask16>((1U << (count - piece.column)) - 1U) : piece.lanes;
        const __mmask16 inside = _mm512_mask_cmplt_epu32_mask(own, at, size);
        if (g.step[2] == 1) {
          v = _mm512_maskz_loadu_ps(inside, line);
        } else if (g.step[2] == 2) {
          // The even numbers of 32, of which only those asked for are read.
          const uint32_t wanted = _pdep_u32(inside, 0x55555555U);
          const __m512 a = _mm512_maskz_loadu_ps(static_cast<__mmask16>(wanted), line);
          const __m512 b = _mm512_maskz_loadu_ps(static_cast<__mmask16>(wanted >> 16), line + 16);
          v = _mm512_permutex2var_ps(a, evens, b);
        } else {
          v = _mm512_mask_i32gather_ps(v, inside, steps, line, 4);
        }
      }
      _mm512_mask_storeu_ps(out + piece.column, piece.lanes, v);
    }
    for (int64_t j = filled; j < width; j += 16) _mm512_storeu_ps(out + j, _mm512_setzero_ps());
    if (++x < g.taps[2]) continue;
    x = 0;
    if (++y < g.taps[1]) continue;
    y = 0;
    if (++z < g.taps[0]) continue;
    z = 0;
    channel += g.channel_stride;
  }
}
#endif

/// out[p * width + j] = rows k0 + p of the patches first + j for j < count, 0 for count <= j < width. T is S or float.
template <class S, class T>
void pack_patches(const Patches<S>& g, int64_t k0, int64_t k, int64_t first, int64_t count, int64_t width, T* out) {
#if defined(__AVX512F__)
  if constexpr (sizeof(S) == 4)
    if (g.size[2] < (1 << 28) && g.step[2] < (1 << 20)) return pack_patches_masked(g, k0, k, first, count, width, out);
#endif
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
