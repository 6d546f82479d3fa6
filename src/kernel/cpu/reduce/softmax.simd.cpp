// softmax loops, compiled once per instruction set.
#include "kernel/cpu/reduce/softmax_table.h"
#include "kernel/cpu/simd/vec_exp.h"
#include "kernel/cpu/simd/vec_math.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int64_t softmax_block =
    1024;  // elements whose exponentials are added in the compute type before they go to double

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
  for (int64_t begin = 0; begin < n; begin += softmax_block) {
    const int64_t end = n - begin < softmax_block ? n : begin + softmax_block;
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
CALQUE_INLINE Wide<S> rounded(Wide<S> v) {
  S narrow;
  store_narrow_tail(&narrow, splat<Wide<S>>(0) + v, 1);
  return load_wide_tail(&narrow, 1)[0];
}

template <class S>
void softmax_run(const void* from, void* to, int64_t n, bool is_log, void* scratch) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  const C max = largest(x, n);
  if (is_log) {
    C total = static_cast<C>(sum_of_exponentials(x, n, max, static_cast<C*>(nullptr)));
    // Of 16-bit numbers ATen keeps the sum, and then its logarithm, in 16 bits; not so over another dimension than the last.
    if constexpr (!std::is_same_v<C, S>) total = rounded<S>(total);
    C log_of_total = logarithm(total);
    if constexpr (!std::is_same_v<C, S>) log_of_total = rounded<S>(log_of_total);
    const Vec<C> m = splat<C>(0) + max;
    const Vec<C> shift = splat<C>(0) + log_of_total;
    int64_t i = 0;
    for (; i + step <= n; i += step) store_narrow(y + i, load_wide(x + i) - m - shift);
    if (i < n) store_narrow_tail(y + i, load_wide_tail(x + i, n - i) - m - shift, n - i);
    return;
  }
  C* kept;
  if constexpr (std::is_same_v<C, S>)
    kept = y;
  else
    kept = static_cast<C*>(scratch);
  const Vec<C> scale = splat<C>(0) + static_cast<C>(1.0 / sum_of_exponentials(x, n, max, kept));
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(y + i, load(kept + i) * scale);
  if (i < n) store_narrow_tail(y + i, load_wide_tail(static_cast<const C*>(kept + i), n - i) * scale, n - i);
}

// `count` registers of columns down all rows, three times over: maximum, exponentials and their sum, scaling. What belongs
// to a column stays in a register. `filled` elements of the last register are columns.
template <class S, int count, bool is_log, bool whole>
CALQUE_INLINE void softmax_strip(const S* x, S* y, int64_t n, int64_t stride, int64_t filled) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  constexpr bool keeps = std::is_same_v<C, S> && !is_log;  // the exponentials fit the output
  const auto at = [&](const S* row, int k) -> Vec<C> {
    return whole ? load_wide(row + k * step) : load_wide_tail(row + k * step, filled);
  };
  const auto put = [&](S* row, int k, Vec<C> v) {
    if (whole)
      store_narrow(row + k * step, v);
    else
      store_narrow_tail(row + k * step, v, filled);
  };
  Vec<C> max[count], sum[count];
  for (int k = 0; k < count; ++k) {
    max[k] = splat<C>(0) - static_cast<C>(__builtin_inf());
    sum[k] = Vec<C>{};
  }
  for (int64_t r = 0; r < n; ++r)
    for (int k = 0; k < count; ++k) max[k] = larger(at(x + r * stride, k), max[k]);
  for (int64_t r0 = 0; r0 < n; r0 += 64) {  // short partial sums, as everywhere
    Vec<C> part[count] = {};
    for (int64_t r = r0; r < n && r < r0 + 64; ++r)
      for (int k = 0; k < count; ++k) {
        const Vec<C> e = exponential(at(x + r * stride, k) - max[k]);
        if constexpr (keeps) put(y + r * stride, k, e);
        part[k] += e;
      }
    for (int k = 0; k < count; ++k) sum[k] += part[k];
  }
  for (int k = 0; k < count; ++k) sum[k] = is_log ? v_log(sum[k]) : 1 / sum[k];
  for (int64_t r = 0; r < n; ++r)
    for (int k = 0; k < count; ++k) {
      if constexpr (is_log)
        put(y + r * stride, k, at(x + r * stride, k) - max[k] - sum[k]);
      else if constexpr (keeps)
        put(y + r * stride, k, at(y + r * stride, k) * sum[k]);
      else
        put(y + r * stride, k, exponential(at(x + r * stride, k) - max[k]) * sum[k]);
    }
}

template <class S, bool is_log>
CALQUE_INLINE void softmax_strips(const S* x, S* y, int64_t n, int64_t stride, int64_t columns) {
  constexpr int64_t step = lanes<Wide<S>>;
  int64_t c = 0;
  for (; c + 4 * step <= columns; c += 4 * step) softmax_strip<S, 4, is_log, true>(x + c, y + c, n, stride, step);
  for (; c + step <= columns; c += step) softmax_strip<S, 1, is_log, true>(x + c, y + c, n, stride, step);
  if (c < columns) softmax_strip<S, 1, is_log, false>(x + c, y + c, n, stride, columns - c);
}

template <class S>
void softmax_tile(const void* from, void* to, int64_t n, int64_t stride, int64_t columns, bool is_log) {
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  if (is_log)
    softmax_strips<S, true>(x, y, n, stride, columns);
  else
    softmax_strips<S, false>(x, y, n, stride, columns);
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
constexpr SoftmaxRow softmax_row() {
  return {&softmax_run<S>, &softmax_tile<S>, &logsumexp_run<S>};
}

}  // namespace

extern const SoftmaxRow softmax_table[];
const SoftmaxRow softmax_table[] = {softmax_row<float>(), softmax_row<double>(), softmax_row<BFloat16>(),
                                    softmax_row<Half>()};

}  // namespace calque::kernel::CALQUE_ISA
