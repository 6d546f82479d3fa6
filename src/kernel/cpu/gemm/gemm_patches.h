// Packing the columns of a convolution straight from the image. For *.simd.cpp files only.
#pragma once

#include "kernel/cpu/gemm/gemm_block.h"
#include "kernel/cpu/gemm/gemm_finish.h"
#include "kernel/cpu/simd/vec.h"

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
/// As pack_patches, for float: columns in pieces of one output line and at most a vector, and for every piece and tap a mask of
/// the lanes that lie in the image.
class MaskedPatches {
 public:
  MaskedPatches(const Patches<float>& g, int64_t first, int64_t count, int64_t width) : g_(g), width_(width) {
    for (int64_t j = 0; j < count;) {
      const int64_t x = (first + j) % g.out_size[2], rest = (first + j) / g.out_size[2];
      const int64_t length = min(min(count - j, g.out_size[2] - x), 16);
      const auto lanes = static_cast<__mmask16>((1U << length) - 1U);
      pieces_[count_++] = {
          rest / g.out_size[1] * g.step[0], rest % g.out_size[1] * g.step[1], x * g.step[2], j, lanes, lanes};
      j += length;
    }
    // The lanes past the last column are 0 in every row.
    Piece& last = pieces_[count_ - 1];
    last.stored = static_cast<__mmask16>(0xffffU >> (16 - min(16, width - last.column)));
    filled_ = min(width, last.column + 16);
    steps_ = _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(g.step[2])), columns());
  }

  void pack(int64_t k0, int64_t k, float* out) {
    const int64_t taps = g_.taps[0] * g_.taps[1] * g_.taps[2];
    if (taps * count_ <= most_spots && taps < k) return pack_tabled(taps, k0, k, out);
    int64_t x = k0 % g_.taps[2], y = k0 / g_.taps[2] % g_.taps[1], z = k0 / (g_.taps[2] * g_.taps[1]) % g_.taps[0];
    const float* channel = g_.image + k0 / taps * g_.channel_stride;
    for (int64_t p = 0; p < k; ++p, out += width_) {
      for (int64_t r = 0; r < count_; ++r) {
        const Spot spot = spot_of(pieces_[r], z, y, x);
        _mm512_mask_storeu_ps(out + pieces_[r].column, pieces_[r].stored, read<0>(channel + spot.offset, spot.inside));
      }
      for (int64_t j = filled_; j < width_; j += 16) _mm512_storeu_ps(out + j, _mm512_setzero_ps());
      if (++x < g_.taps[2]) continue;
      x = 0;
      if (++y < g_.taps[1]) continue;
      y = 0;
      if (++z < g_.taps[0]) continue;
      z = 0;
      channel += g_.channel_stride;
    }
  }

 private:
  struct Piece {
    int64_t depth, height, start, column;
    __mmask16 own, stored;
  };
  /// Where a tap finds the numbers of a piece, from the start of a channel, and which of them exist.
  struct Spot {
    int64_t offset;
    uint32_t inside;
  };
  static constexpr int64_t most_spots = 512;

  static __m512i columns() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }

  CALQUE_INLINE Spot spot_of(const Piece& piece, int64_t z, int64_t y, int64_t x) const {
    const int64_t depth = piece.depth + g_.tap_offset[0][z], height = piece.height + g_.tap_offset[1][y];
    const int64_t start = piece.start + g_.tap_offset[2][x];
    if (static_cast<uint64_t>(depth) >= static_cast<uint64_t>(g_.size[0]) ||
        static_cast<uint64_t>(height) >= static_cast<uint64_t>(g_.size[1]))
      return {0, 0};
    const __m512i at = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(start)), steps_);
    const uint32_t inside = _mm512_mask_cmplt_epu32_mask(piece.own, at, _mm512_set1_epi32(static_cast<int>(g_.size[2])));
    // Of a line's every second number, only those asked for are read.
    return {depth * g_.stride[0] + height * g_.stride[1] + start, g_.step[2] == 2 ? _pdep_u32(inside, 0x55555555U) : inside};
  }

  /// Step: of the width, 0 if only known at run time.
  template <int Step>
  CALQUE_INLINE __m512 read(const float* from, uint32_t inside) const {
    const int64_t step = Step == 0 ? g_.step[2] : Step;
    const auto low = static_cast<__mmask16>(inside);
    if (step == 1) return _mm512_maskz_loadu_ps(low, from);
    if (step == 2) {
      const __m512 a = _mm512_maskz_loadu_ps(low, from);
      const __m512 b = _mm512_maskz_loadu_ps(static_cast<__mmask16>(inside >> 16), from + 16);
      return _mm512_permutex2var_ps(a, _mm512_slli_epi32(columns(), 1), b);
    }
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), low, steps_, from, 4);
  }

  /// The spots are the same for every channel.
  void pack_tabled(int64_t taps, int64_t k0, int64_t k, float* out) {
    Spot* to = spots_;
    for (int64_t z = 0; z < g_.taps[0]; ++z)
      for (int64_t y = 0; y < g_.taps[1]; ++y)
        for (int64_t x = 0; x < g_.taps[2]; ++x)
          for (int64_t r = 0; r < count_; ++r) *to++ = spot_of(pieces_[r], z, y, x);
    if (g_.step[2] == 1) return pack_spots<1>(taps, k0, k, out);
    if (g_.step[2] == 2) return pack_spots<2>(taps, k0, k, out);
    pack_spots<0>(taps, k0, k, out);
  }

  template <int Step>
  void pack_spots(int64_t taps, int64_t k0, int64_t k, float* out) const {
    const Spot* spot = spots_ + k0 % taps * count_;
    const Spot* const end = spots_ + taps * count_;
    const float* channel = g_.image + k0 / taps * g_.channel_stride;
    for (int64_t p = 0; p < k; ++p, out += width_) {
      for (int64_t r = 0; r < count_; ++r, ++spot)
        _mm512_mask_storeu_ps(out + pieces_[r].column, pieces_[r].stored, read<Step>(channel + spot->offset, spot->inside));
      for (int64_t j = filled_; j < width_; j += 16) _mm512_storeu_ps(out + j, _mm512_setzero_ps());
      if (spot == end) {
        spot = spots_;
        channel += g_.channel_stride;
      }
    }
  }

  const Patches<float>& g_;
  int64_t width_, filled_ = 0, count_ = 0;
  __m512i steps_;
  Piece pieces_[48];
  Spot spots_[most_spots];
};
#endif

/// As pack_patches, for patches with row_offset: whole vectors.
template <class T>
void pack_spread(const Patches<T>& g, int64_t k0, int64_t k, int64_t first, int64_t count, int64_t width, T* out) {
  constexpr int L = lanes<T>;
  constexpr int64_t most = 16;
  const T* from[most];
  const int64_t vectors = count / L;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t x = (first + v * L) % g.out_size[2], line = (first + v * L) / g.out_size[2];
    from[v] = g.image + line / g.out_size[1] * g.step[0] * g.stride[0] + line % g.out_size[1] * g.step[1] * g.stride[1] + x;
  }
  for (int64_t p = 0; p < k; ++p, out += width) {
    const int64_t offset = g.row_offset[k0 + p];
    for (int64_t v = 0; v < vectors; ++v) store(out + v * L, load(from[v] + offset));
    for (int64_t j = count; j < width; j += L) store(out + j, Vec<T>{});
  }
}

/// out[p * width + j] = rows k0 + p of the patches first + j for j < count, 0 for count <= j < width. T is S or float.
template <class S, class T>
void pack_patches(const Patches<S>& g, int64_t k0, int64_t k, int64_t first, int64_t count, int64_t width, T* out) {
  if constexpr (sizeof(S) == sizeof(T) && sizeof(S) >= 4)
    if (g.row_offset != nullptr && first % lanes<T> == 0 && count % lanes<T> == 0)
      return pack_spread(g, k0, k, first, count, width, out);
#if defined(__AVX512F__)
  if constexpr (sizeof(S) == 4)
    if (g.size[2] < (1 << 28) && g.step[2] < (1 << 20)) return MaskedPatches(g, first, count, width).pack(k0, k, out);
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
