#include "kernel/cpu/index/order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/index/slices.h"

namespace calque::kernel {
namespace {

template <class C>
bool nan(C x) {
  if constexpr (std::is_floating_point_v<C>)
    return std::isnan(x);
  else
    return false;
}
// NaN above everything.
template <class C>
bool sorts_before(C a, C b) {
  return (!nan(a) && nan(b)) || a < b;
}

template <class F>
void by_compute(DType d, F&& fn) {
  switch (compute_type(d)) {
    case Compute::f32: return fn(float{});
    case Compute::f64: return fn(double{});
    case Compute::i64:
    case Compute::c128: return fn(int64_t{});
  }
}

// Position (within the slice) of the median.
template <class C>
int64_t median_of(const std::vector<C>& x, std::vector<int64_t>& order, bool ignore_nan) {
  const auto n = static_cast<int64_t>(x.size());
  int64_t present = n;
  if (ignore_nan)
    present -= std::count_if(x.begin(), x.end(), [](C v) { return nan(v); });
  else
    for (int64_t i = 0; i < n; ++i)
      if (nan(x[static_cast<size_t>(i)])) return i;
  const int64_t k = std::max<int64_t>(present - 1, 0) / 2;
  order.resize(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
    const C u = x[static_cast<size_t>(a)];
    const C v = x[static_cast<size_t>(b)];
    return sorts_before(u, v) || (!sorts_before(v, u) && a < b);
  });
  return order[static_cast<size_t>(k)];
}

// Calls pick(values of a slice, scratch) -> position for each slice and writes value and position.
template <class C, class Pick>
void each_slice(const TensorBase& self, int64_t dim, bool keepdim, const TensorBase& values, const TensorBase& indices,
                const Pick& pick) {
  const TensorBase v = self.dim() && !keepdim ? with_reduced_dim(values, dim) : values;
  const TensorBase ix = self.dim() && !keepdim ? with_reduced_dim(indices, dim) : indices;
  const Slices slices(dim, {&self, &v, &ix});
  const LoadFn load = load_fn(self.dtype(), compute_of<C>);
  const StoreFn store = store_fn(compute_of<C>, values.dtype());
  slices.parallel(1, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, slices.length())), [&](char* const* at, int64_t) {
    std::vector<C> x(static_cast<size_t>(slices.length()));
    std::vector<int64_t> scratch;
    load(at[0], slices.step(0), x.data(), slices.length());
    const int64_t position = pick(x, scratch);
    store(&x[static_cast<size_t>(position)], at[1], 0, 1);
    *reinterpret_cast<int64_t*>(at[2]) = position;
  });
}

// Which of equal values' indices comes last is std::sort's choice, as it is in PyTorch, which compares NaN like any number.
// A guard at either end, neither less nor greater than anything, holds the sort that runs astray over NaN.
template <class C>
int64_t mode_of(const std::vector<C>& x) {
  using Entry = std::pair<C, int64_t>;
  std::vector<Entry> guarded(x.size() + 2, Entry{std::numeric_limits<C>::quiet_NaN(), 0});
  for (size_t i = 0; i < x.size(); ++i) guarded[i + 1] = {x[i], static_cast<int64_t>(i)};
  const std::span<Entry> sorted(guarded.data() + 1, x.size());
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  int64_t best = 0;
  int64_t best_count = 0;
  int64_t count = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    ++count;
    if (i + 1 < sorted.size() && sorted[i].first == sorted[i + 1].first) continue;
    if (count > best_count) {
      best_count = count;
      best = sorted[i].second;
    }
    count = 0;
  }
  return best;
}

}  // namespace

void median(const TensorBase& self, int64_t dim, bool keepdim, bool ignore_nan, const TensorBase& values,
            const TensorBase& indices) {
  if (self.numel() == 0) return;
  by_compute(self.dtype(), [&](auto zero) {
    using C = decltype(zero);
    each_slice<C>(self, dim, keepdim, values, indices,
                  [ignore_nan](const std::vector<C>& x, std::vector<int64_t>& s) { return median_of(x, s, ignore_nan); });
  });
}

void median_all(const TensorBase& self, bool ignore_nan, const TensorBase& out) {
  if (self.numel() == 0)
    return copy(wrapped_scalar(Scalar(std::numeric_limits<double>::quiet_NaN()), DType::float32),
                out);  // integers get what NaN casts to
  by_compute(self.dtype(), [&](auto zero) {
    using C = decltype(zero);
    std::vector<C> x(static_cast<size_t>(self.numel()));
    const LoadFn load = load_fn(self.dtype(), compute_of<C>);
    const int64_t last = std::max<int64_t>(self.dim() - 1, 0);
    const Slices slices(last, {&self});
    for (int64_t i = 0; i < slices.count(); ++i)
      load(slices.start(i), slices.step(0), x.data() + i * slices.length(), slices.length());
    std::vector<int64_t> scratch;
    const C result = x[static_cast<size_t>(median_of(x, scratch, ignore_nan))];
    store_fn(compute_of<C>, out.dtype())(&result, out.mutable_data(), 0, 1);
  });
}

void mode(const TensorBase& self, int64_t dim, bool keepdim, const TensorBase& values, const TensorBase& indices) {
  if (self.numel() == 0) return;
  by_compute(self.dtype(), [&](auto zero) {
    using C = decltype(zero);
    each_slice<C>(self, dim, keepdim, values, indices,
                  [](const std::vector<C>& x, std::vector<int64_t>&) { return mode_of(x); });
  });
}

}  // namespace calque::kernel
