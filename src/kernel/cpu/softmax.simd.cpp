// softmax loops, compiled once per instruction set.
#include "kernel/cpu/softmax_table.h"
#include "kernel/cpu/vec_exp.h"
#include "kernel/cpu/vec_math.h"
#include "kernel/cpu/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int64_t block = 1024;  // elements whose exponentials are added in the compute type before they go to double

CALQUE_INLINE Vec<float> exponential(Vec<float> x) { return quick_exp(x); }
CALQUE_INLINE Vec<double> exponential(Vec<double> x) { return v_exp(x); }
CALQUE_INLINE float logarithm(float x) { return __builtin_logf(x); }
CALQUE_INLINE double logarithm(double x) { return __builtin_log(x); }

template <class V>
CALQUE_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}

// NaN is no maximum here: it turns the whole slice into NaN through its exponential.
template <class S>
CALQUE_INLINE Wide<S> largest(const S* x, int64_t n) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const Vec<C> low = splat<C>(0) - static_cast<C>(__builtin_inf());
  Vec<C> a = low, b = low, c = low, d = low;
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = larger(load_wide(x + i), a);
    b = larger(load_wide(x + i + step), b);
    c = larger(load_wide(x + i + 2 * step), c);
    d = larger(load_wide(x + i + 3 * step), d);
  }
  for (; i + step <= n; i += step) a = larger(load_wide(x + i), a);
  if (i < n) b = larger(keep_first<C>(load_wide_tail(x + i, n - i), n - i, low), b);
  a = larger(larger(a, b), larger(c, d));
  C parts[step];
  store(parts, a);
  for (int64_t width = step / 2; width > 0; width /= 2)
    for (int64_t k = 0; k < width; ++k) parts[k] = parts[k] > parts[k + width] ? parts[k] : parts[k + width];
  return parts[0];
}

// Sum of exp(x - max), the exponentials kept in `kept` unless it is null.
template <class S>
CALQUE_INLINE double sum_of_exponentials(const S* x, int64_t n, Wide<S> max, Wide<S>* kept) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const Vec<C> m = splat<C>(0) + max;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = n - begin < block ? n : begin + block;
    Vec<C> a = {}, b = {};
    int64_t i = begin;
    for (; i + 2 * step <= end; i += 2 * step) {
      const Vec<C> e = exponential(load_wide(x + i) - m);
      const Vec<C> f = exponential(load_wide(x + i + step) - m);
      if (kept) {
        store(kept + i, e);
        store(kept + i + step, f);
      }
      a += e;
      b += f;
    }
    for (; i + step <= end; i += step) {
      const Vec<C> e = exponential(load_wide(x + i) - m);
      if (kept) store(kept + i, e);
      a += e;
    }
    if (i < end) {
      const Vec<C> e = keep_first<C>(exponential(load_wide_tail(x + i, end - i) - m), end - i, Vec<C>{});
      if (kept) std::memcpy(kept + i, &e, static_cast<size_t>(end - i) * sizeof(C));
      b += e;
    }
    total += static_cast<double>(sum_lanes<C>(a + b));
  }
  return total;
}

template <class S>
void softmax_run(const void* from, void* to, int64_t n, bool is_log, void* scratch) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  const C max = largest(x, n);
  if (is_log) {
    const C total = static_cast<C>(sum_of_exponentials(x, n, max, static_cast<C*>(nullptr)));
    const Vec<C> m = splat<C>(0) + max;
    const Vec<C> shift = splat<C>(0) + logarithm(total);
    int64_t i = 0;
    for (; i + step <= n; i += step) store_narrow(y + i, load_wide(x + i) - m - shift);
    if (i < n) store_narrow_tail(y + i, load_wide_tail(x + i, n - i) - m - shift, n - i);
    return;
  }
  C* kept;
  if constexpr (std::is_same_v<C, S>) kept = y;
  else kept = static_cast<C*>(scratch);
  const Vec<C> scale = splat<C>(0) + static_cast<C>(1.0 / sum_of_exponentials(x, n, max, kept));
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(y + i, load(kept + i) * scale);
  if (i < n) store_narrow_tail(y + i, load_wide_tail(static_cast<const C*>(kept + i), n - i) * scale, n - i);
}

template <class S>
void softmax_tile(const void* from, void* to, int64_t n, int64_t stride, int64_t columns, bool is_log) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  constexpr bool keeps = std::is_same_v<C, S>;  // the exponentials fit the output
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  const int64_t whole = columns / step * step;
  alignas(64) C max[softmax_tile_width];
  alignas(64) C sum[softmax_tile_width];
  const auto at = [&](const S* base, int64_t row, int64_t c) -> Vec<C> {
    const S* p = base + row * stride + c;
    return c < whole ? load_wide(p) : load_wide_tail(p, columns - c);
  };
  const auto put = [&](int64_t row, int64_t c, Vec<C> v) {
    S* p = y + row * stride + c;
    if (c < whole) store_narrow(p, v);
    else store_narrow_tail(p, v, columns - c);
  };
  for (int64_t c = 0; c < columns; c += step) {
    store(max + c, splat<C>(0) - static_cast<C>(__builtin_inf()));
    store(sum + c, Vec<C>{});
  }
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < columns; c += step) store(max + c, larger(at(x, r, c), load(max + c)));
  alignas(64) C part[softmax_tile_width];
  for (int64_t r0 = 0; r0 < n; r0 += 64) {  // short partial sums, as everywhere
    for (int64_t c = 0; c < columns; c += step) store(part + c, Vec<C>{});
    for (int64_t r = r0; r < n && r < r0 + 64; ++r)
      for (int64_t c = 0; c < columns; c += step) {
        const Vec<C> e = exponential(at(x, r, c) - load(max + c));
        if (keeps && !is_log) put(r, c, e);
        store(part + c, load(part + c) + e);
      }
    for (int64_t c = 0; c < columns; c += step) store(sum + c, load(sum + c) + load(part + c));
  }
  for (int64_t c = 0; c < columns; c += step) {
    if (is_log) store(sum + c, v_log(load(sum + c)));
    else store(sum + c, 1 / load(sum + c));
  }
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < columns; c += step) {
      if (is_log) put(r, c, at(x, r, c) - load(max + c) - load(sum + c));
      else if constexpr (keeps) put(r, c, at(y, r, c) * load(sum + c));
      else put(r, c, exponential(at(x, r, c) - load(max + c)) * load(sum + c));
    }
}

template <class S>
double logsumexp_run(const void* from, int64_t n) {
  const S* x = static_cast<const S*>(from);
  auto max = largest(x, n);
  if (max - max != 0) max = 0;  // infinities speak for themselves
  const double total = sum_of_exponentials(x, n, max, static_cast<Wide<S>*>(nullptr));
  return __builtin_log(total) + static_cast<double>(max);
}

template <class S>
constexpr SoftmaxRow row() {
  return {&softmax_run<S>, &softmax_tile<S>, &logsumexp_run<S>};
}

}  // namespace

extern const SoftmaxRow softmax_table[];
const SoftmaxRow softmax_table[] = {row<float>(), row<double>(), row<BFloat16>(), row<Half>()};

}  // namespace calque::kernel::CALQUE_ISA
