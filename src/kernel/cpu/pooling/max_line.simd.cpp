#include "kernel/cpu/pooling/max_line.h"

#include <utility>

#include "kernel/cpu/simd/vec.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int line_lanes = lanes<float>;
using LineNumbers = Vec<float>;
using LinePlaces = Vec<int32_t>;

CALQUE_INLINE LinePlaces line_counting(int32_t step) {
  LinePlaces p;
  for (int i = 0; i < line_lanes; ++i) p[i] = step * i;
  return p;
}

template <size_t... I>
CALQUE_INLINE LineNumbers line_every_second(LineNumbers low, LineNumbers high, std::index_sequence<I...>) {
  return __builtin_shufflevector(low, high, (I < line_lanes / 2 ? 2 * I : 2 * I + 1)...);
}

// Every Step-th number; the second of two vectors begins one number early, so that nothing behind the last is read.
template <int Step, class T>
CALQUE_INLINE LineNumbers line_spread(const T* p) {
  if constexpr (Step == 1) return load_wide(p);
  return line_every_second(load_wide(p), load_wide(p + line_lanes - 1), std::make_index_sequence<line_lanes>());
}

template <class T>
void window_maximum(const MaxLine<T>& of, int64_t x, T* out, int64_t* at) {
  float best = -__builtin_inff();
  const int64_t start = x * of.stride - of.padding;
  int64_t place = of.begin * of.length + start + (start < 0 ? (-start + of.dilation - 1) / of.dilation * of.dilation : 0);
  for (int64_t y = of.begin; y < of.end; y += of.step)
    for (int64_t t = 0; t < of.taps; ++t) {
      const int64_t p = start + t * of.dilation;
      if (p < 0 || p >= of.length) continue;
      const float v = widen(of.plane[y * of.line + p]);
      const bool wins = v > best || v != v;
      place = wins ? y * of.length + p : place;
      best = wins ? v : best;
    }
  *out = narrow<T>(best);
  *at = place;
}

template <int Step, class T>
CALQUE_INLINE void window_maxima(const MaxLine<T>& of, int64_t x, T* out, int64_t* at) {
  const int64_t first = x * Step - of.padding;
  const LinePlaces steps = line_counting(Step);
  LineNumbers best = splat(-__builtin_inff());
  LinePlaces place = steps + static_cast<int32_t>(of.begin * of.length + first);
  for (int64_t y = of.begin; y < of.end; y += of.step)
    for (int64_t t = 0; t < of.taps; ++t) {
      const int64_t p = first + t * of.dilation;
      const LineNumbers v = line_spread<Step>(of.plane + y * of.line + p);
      const LinePlaces here = steps + static_cast<int32_t>(y * of.length + p);
      const auto wins = (v > best) | (v != v);
      best = wins ? v : best;
      place = wins ? here : place;
    }
  store_narrow(out, best);
  for (int i = 0; i < line_lanes; ++i) at[i] = place[i];
}

// Windows that lie within the lines, a vector of them at a time; the last vector may be over the one before.
template <int Step, class T>
CALQUE_INLINE void whole_line(const MaxLine<T>& of, int64_t count, T* out, int64_t* at) {
  const int64_t low = (of.padding + Step - 1) / Step, reach = of.length + of.padding - 1 - (of.taps - 1) * of.dilation;
  int64_t high = reach < 0 ? 0 : reach / Step + 1;
  high = high < count ? high : count;
  int64_t done = 0;
  if (high - low >= line_lanes) {
    for (; done < low; ++done) window_maximum(of, done, out + done, at + done);
    for (; done + line_lanes <= high; done += line_lanes) window_maxima<Step>(of, done, out + done, at + done);
    if (done < high) window_maxima<Step>(of, high - line_lanes, out + high - line_lanes, at + high - line_lanes);
    done = high;
  }
  for (; done < count; ++done) window_maximum(of, done, out + done, at + done);
}

template <class T>
void line_maxima(const MaxLine<T>& of, int64_t count, T* out, int64_t* at) {
  if (of.stride == 1) return whole_line<1>(of, count, out, at);
  if (of.stride == 2) return whole_line<2>(of, count, out, at);
  for (int64_t x = 0; x < count; ++x) window_maximum(of, x, out + x, at + x);
}

}  // namespace

extern const MaxLineKernels max_line_kernels[] = {{line_maxima<float>, line_maxima<BFloat16>}};

}  // namespace calque::kernel::CALQUE_ISA
