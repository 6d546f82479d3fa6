// Loops of normalisation's gradients, compiled once per instruction set.
#include "kernel/cpu/reduce/norm_backward_table.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int64_t gradient_block = 1024;  // elements that are added in the compute type before they go to double

template <class C>
CALQUE_INLINE Vec<C> all_of(double x) {
  return splat<C>(0) + static_cast<C>(x);
}

template <class S>
void gradient_sums(const void* grad, const void* from, const void* weight, int64_t n, double center, double& with_x,
                   double& alone) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const S* g = static_cast<const S*>(grad);
  const S* x = static_cast<const S*>(from);
  const C* w = static_cast<const C*>(weight);
  const Vec<C> m = all_of<C>(center);
  with_x = alone = 0;
  for (int64_t begin = 0; begin < n; begin += gradient_block) {
    const int64_t end = n - begin < gradient_block ? n : begin + gradient_block;
    Vec<C> a = {}, b = {}, c = {}, d = {};
    int64_t i = begin;
    for (; i + 2 * step <= end; i += 2 * step) {
      Vec<C> first = load_wide(g + i), second = load_wide(g + i + step);
      if (w) first *= load(w + i), second *= load(w + i + step);
      a += first * (load_wide(x + i) - m);
      b += second * (load_wide(x + i + step) - m);
      c += first;
      d += second;
    }
    for (; i < end; i += step) {
      const int64_t left = end - i < step ? end - i : step;
      const bool whole = left == step;
      Vec<C> value = whole ? load_wide(g + i) : load_wide_tail(g + i, left);
      if (w) value *= whole ? load(w + i) : load_wide_tail(w + i, left);
      const Vec<C> at = (whole ? load_wide(x + i) : load_wide_tail(x + i, left)) - m;
      const Vec<C> term = value * at;
      a += whole ? term : keep_first<C>(term, left, Vec<C>{});
      c += whole ? value : keep_first<C>(value, left, Vec<C>{});
    }
    with_x += static_cast<double>(sum_lanes<C>(a + b));
    alone += static_cast<double>(sum_lanes<C>(c + d));
  }
}

template <class S>
void gradient_row(const void* grad, const void* from, const void* weight, int64_t n, double scale, double center,
                  double slope, double rest, void* to) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const S* g = static_cast<const S*>(grad);
  const S* x = static_cast<const S*>(from);
  const C* w = static_cast<const C*>(weight);
  S* y = static_cast<S*>(to);
  const Vec<C> a = all_of<C>(scale), m = all_of<C>(center), b = all_of<C>(slope), r = all_of<C>(rest);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    Vec<C> straight = a * load_wide(g + i);
    if (w) straight *= load(w + i);
    store_narrow(y + i, fma(b, load_wide(x + i) - m, straight) + r);
  }
  if (i < n) {
    Vec<C> straight = a * load_wide_tail(g + i, n - i);
    if (w) straight *= load_wide_tail(w + i, n - i);
    store_narrow_tail(y + i, fma(b, load_wide_tail(x + i, n - i) - m, straight) + r, n - i);
  }
}

template <class S>
void gradient_columns(const void* grad, const void* from, int64_t n, double center, double scale, void* with_x,
                      void* alone) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const S* g = static_cast<const S*>(grad);
  const S* x = static_cast<const S*>(from);
  C* sums = static_cast<C*>(with_x);
  C* plain = static_cast<C*>(alone);
  const Vec<C> m = all_of<C>(center), a = all_of<C>(scale);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    const Vec<C> value = load_wide(g + i);
    store(sums + i, load(sums + i) + value * ((load_wide(x + i) - m) * a));
    store(plain + i, load(plain + i) + value);
  }
  if (i < n) {
    const int64_t left = n - i;
    const Vec<C> value = load_wide_tail(g + i, left), at = (load_wide_tail(x + i, left) - m) * a;
    store_narrow_tail(sums + i, load_wide_tail(static_cast<const C*>(sums + i), left) + value * at, left);
    store_narrow_tail(plain + i, load_wide_tail(static_cast<const C*>(plain + i), left) + value, left);
  }
}

template <class S>
constexpr NormBackwardRow norm_backward_row() {
  return {&gradient_sums<S>, &gradient_row<S>, &gradient_columns<S>};
}

}  // namespace

extern const NormBackwardRow norm_backward_table[];
const NormBackwardRow norm_backward_table[] = {norm_backward_row<float>(), norm_backward_row<double>(),
                                               norm_backward_row<BFloat16>(), norm_backward_row<Half>()};

}  // namespace calque::kernel::CALQUE_ISA
