// The rows of attention's gradient, compiled once per instruction set.
#include "kernel/cpu/attention/attention_backward_table.h"
#include "kernel/cpu/simd/vec_exp.h"
#include "kernel/cpu/simd/vec_math.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

CALQUE_INLINE Vec<float> exponential_of(Vec<float> x) { return quick_exp(x); }
CALQUE_INLINE Vec<double> exponential_of(Vec<double> x) { return v_exp(x); }

template <class C>
void attention_weights(void* scores, int64_t n, double scale, const void* mask, double logsumexp) {
  constexpr int64_t step = lanes<C>;
  C* s = static_cast<C*>(scores);
  const C* m = static_cast<const C*>(mask);
  const Vec<C> a = splat<C>(0) + static_cast<C>(scale), b = splat<C>(0) + static_cast<C>(logsumexp);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    Vec<C> x = load(s + i) * a;
    if (m) x += load(m + i);
    store(s + i, exponential_of(x - b));
  }
  if (i < n) {
    Vec<C> x = load_wide_tail(static_cast<const C*>(s + i), n - i) * a;
    if (m) x += load_wide_tail(m + i, n - i);
    store_narrow_tail(s + i, exponential_of(x - b), n - i);
  }
}

template <class C>
void attention_slopes(const void* weights, void* slopes, int64_t n, double level, double scale) {
  constexpr int64_t step = lanes<C>;
  const C* w = static_cast<const C*>(weights);
  C* s = static_cast<C*>(slopes);
  const Vec<C> a = splat<C>(0) + static_cast<C>(scale), d = splat<C>(0) + static_cast<C>(level);
  int64_t i = 0;
  for (; i + step <= n; i += step) store(s + i, load(w + i) * (load(s + i) - d) * a);
  if (i < n)
    store_narrow_tail(s + i, load_wide_tail(w + i, n - i) * (load_wide_tail(static_cast<const C*>(s + i), n - i) - d) * a,
                      n - i);
}

template <class C>
double attention_dot(const void* a, const void* b, int64_t n) {
  constexpr int64_t step = lanes<C>;
  const C* x = static_cast<const C*>(a);
  const C* y = static_cast<const C*>(b);
  Vec<C> sum = {};
  int64_t i = 0;
  for (; i + step <= n; i += step) sum += load(x + i) * load(y + i);
  if (i < n) sum += keep_first<C>(load_wide_tail(x + i, n - i) * load_wide_tail(y + i, n - i), n - i, Vec<C>{});
  return static_cast<double>(sum_lanes<C>(sum));
}

template <class C>
constexpr AttentionBackwardRow attention_backward_row() {
  return {&attention_weights<C>, &attention_slopes<C>, &attention_dot<C>};
}

}  // namespace

extern const AttentionBackwardRow attention_backward_table[];
const AttentionBackwardRow attention_backward_table[] = {attention_backward_row<float>(), attention_backward_row<double>()};

}  // namespace calque::kernel::CALQUE_ISA
