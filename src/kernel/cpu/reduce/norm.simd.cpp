// Normalisation loops, compiled once per instruction set.
#include "kernel/cpu/reduce/norm_table.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int64_t norm_block = 1024;  // read twice while it is in the first-level cache

template <class S, class F>
CALQUE_INLINE double sum_over(const S* x, int64_t n, F f) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  Vec<C> a = {}, b = {}, c = {}, d = {};
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a += f(load_wide(x + i));
    b += f(load_wide(x + i + step));
    c += f(load_wide(x + i + 2 * step));
    d += f(load_wide(x + i + 3 * step));
  }
  for (; i + step <= n; i += step) a += f(load_wide(x + i));
  if (i < n) b += keep_first<C>(f(load_wide_tail(x + i, n - i)), n - i, Vec<C>{});
  return static_cast<double>(sum_lanes<C>((a + b) + (c + d)));
}

template <class S>
void moments(const void* from, int64_t n, Moments& m) {
  using C = Wide<S>;
  const S* x = static_cast<const S*>(from);
  for (int64_t i = 0; i < n; i += norm_block) {
    const int64_t count = n - i < norm_block ? n - i : norm_block;
    const auto size = static_cast<double>(count);
    const double mean = sum_over(x + i, count, [](Vec<C> v) { return v; }) / size;
    const auto rounded = static_cast<C>(mean);
    const Vec<C> center = splat<C>(0) + rounded;
    double squares = sum_over(x + i, count, [center](Vec<C> v) { return (v - center) * (v - center); });
    // What rounding the center added.
    const double shift = mean - static_cast<double>(rounded);
    squares -= shift * shift * size;
    const double total = m.count + size;
    const double delta = mean - m.mean;
    m.squares += squares + (m.count == 0 ? 0 : delta * delta * (m.count * size / total));
    m.mean = m.count == 0 ? mean : m.mean + delta * (size / total);
    m.count = total;
  }
}

template <class S>
double mean_square(const void* from, int64_t n) {
  using C = Wide<S>;
  const S* x = static_cast<const S*>(from);
  double total = 0;
  for (int64_t i = 0; i < n; i += norm_block)
    total += sum_over(x + i, n - i < norm_block ? n - i : norm_block, [](Vec<C> v) { return v * v; });
  return total / static_cast<double>(n);
}

// One loop for all the forms: f(x, index) gives the result of one vector, with loads of parameters done by the caller's
// functions at the index.
template <class S, class F>
CALQUE_INLINE void transform(const S* x, S* y, int64_t n, F f) {
  constexpr int64_t step = lanes<Wide<S>>;
  int64_t i = 0;
  for (; i + step <= n; i += step) store_narrow(y + i, f(load_wide(x + i), i, step));
  if (i < n) store_narrow_tail(y + i, f(load_wide_tail(x + i, n - i), i, n - i), n - i);
}
template <class C>
CALQUE_INLINE Vec<C> parameter(const C* p, int64_t i, int64_t n) {
  return n == lanes<C> ? load(p + i) : load_wide_tail(p + i, n);
}

template <class S>
void normalize(const void* from, int64_t n, double mean, double rstd, const void* weight, const void* bias, void* to) {
  using C = Wide<S>;
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  const C* w = static_cast<const C*>(weight);
  const C* b = static_cast<const C*>(bias);
  const Vec<C> m = splat<C>(0) + static_cast<C>(mean);
  const Vec<C> r = splat<C>(0) + static_cast<C>(rstd);
  if (w && b)
    transform(x, y, n,
              [&](Vec<C> v, int64_t i, int64_t k) { return fma((v - m) * r, parameter(w, i, k), parameter(b, i, k)); });
  else if (w)
    transform(x, y, n, [&](Vec<C> v, int64_t i, int64_t k) { return (v - m) * r * parameter(w, i, k); });
  else if (b)
    transform(x, y, n, [&](Vec<C> v, int64_t i, int64_t k) { return fma(v - m, r, parameter(b, i, k)); });
  else
    transform(x, y, n, [&](Vec<C> v, int64_t, int64_t) { return (v - m) * r; });
}

template <class S>
void affine(const void* from, int64_t n, double center, double scale, double shift, void* to) {
  using C = Wide<S>;
  const Vec<C> m = splat<C>(0) + static_cast<C>(center);
  const Vec<C> a = splat<C>(0) + static_cast<C>(scale);
  const Vec<C> b = splat<C>(0) + static_cast<C>(shift);
  transform(static_cast<const S*>(from), static_cast<S*>(to), n,
            [&](Vec<C> v, int64_t, int64_t) { return fma(v - m, a, b); });
}

template <class S>
void affine_each(const void* from, int64_t n, const void* center, const void* scale, const void* shift, void* to) {
  using C = Wide<S>;
  const C* m = static_cast<const C*>(center);
  const C* a = static_cast<const C*>(scale);
  const C* b = static_cast<const C*>(shift);
  transform(static_cast<const S*>(from), static_cast<S*>(to), n, [&](Vec<C> v, int64_t i, int64_t k) {
    return fma(v - parameter(m, i, k), parameter(a, i, k), parameter(b, i, k));
  });
}

template <class S>
constexpr NormRow norm_row() {
  return {&moments<S>, &mean_square<S>, &normalize<S>, &affine<S>, &affine_each<S>};
}

}  // namespace

extern const NormRow norm_table[];
const NormRow norm_table[] = {norm_row<float>(), norm_row<double>(), norm_row<BFloat16>(), norm_row<Half>()};

}  // namespace calque::kernel::CALQUE_ISA
