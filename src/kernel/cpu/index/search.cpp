#include "kernel/cpu/index/search.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/index/index.h"

namespace calque::kernel {
namespace {

// The dtype of the compute type that holds every value of `common`, rounded to it first.
TensorBase comparable(const TensorBase& t, DType common) {
  const DType wide = common == DType::float64 ? DType::float64 : is_floating(common) ? DType::float32 : DType::int64;
  return contiguous_as(t.dtype() == common ? t : contiguous_as(t, common), wide);
}

template <class F>
void with_comparable(DType common, F&& fn) {
  if (common == DType::float64)
    fn(TypeTag<double>{});
  else if (is_floating(common))
    fn(TypeTag<float>{});
  else
    fn(TypeTag<int64_t>{});
}

// Binary search; comparisons with NaN are false, which decides where it goes.
template <bool right, class T>
int64_t position(const T* line, const int64_t* sorter, int64_t n, T value) {
  int64_t begin = 0;
  int64_t end = n;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const T x = line[sorter ? sorter[middle] : middle];
    const bool beyond = right ? x > value : x >= value;
    if (beyond)
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

}  // namespace

void searchsorted(const TensorBase& boundaries, const TensorBase& values, const TensorBase& sorter, bool right, DType common,
                  const TensorBase& out) {
  const TensorBase lines = comparable(boundaries, common);
  const TensorBase wanted = comparable(values, common);
  const TensorBase order = sorter.defined() ? contiguous_as(sorter, DType::int64) : TensorBase();
  const int64_t n = boundaries.sizes().back();
  const int64_t total = wanted.numel();
  if (total == 0) return;
  const int64_t each = boundaries.dim() == 1 ? total : values.sizes().back();
  if (order.defined()) {
    const int64_t* p = order.data_as<int64_t>();
    for (int64_t i = 0; i < order.numel(); ++i)
      if (p[i] < 0 || p[i] >= n)
        throw UserError("searchsorted: sorter index out of range: found " + std::to_string(p[i]) +
                        " for boundaries of size " + std::to_string(n));
  }
  with_comparable(common, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* line = lines.data_as<T>();
    const T* value = wanted.data_as<T>();
    const int64_t* at = order.defined() ? order.data_as<int64_t>() : nullptr;
    parallel_for(0, total, 2048, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t skip = boundaries.dim() == 1 ? 0 : i / each * n;
        const int64_t* sorted = at ? at + skip : nullptr;
        const int64_t p =
            right ? position<true>(line + skip, sorted, n, value[i]) : position<false>(line + skip, sorted, n, value[i]);
        if (out.dtype() == DType::int32)
          static_cast<int32_t*>(out.mutable_data())[i] = static_cast<int32_t>(p);
        else
          static_cast<int64_t*>(out.mutable_data())[i] = p;
      }
    });
  });
}

void isin(const TensorBase& elements, const TensorBase& test_elements, DType common, bool invert, const TensorBase& out) {
  const TensorBase wanted = comparable(elements, common);
  const TensorBase tests = comparable(test_elements, common);
  auto* found = static_cast<bool*>(out.mutable_data());
  with_comparable(common, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = tests.data_as<T>();
    std::vector<T> list(p, p + tests.numel());
    std::erase_if(list, [](T x) { return x != x; });
    const bool search = list.size() > 16;
    if (search) std::sort(list.begin(), list.end());
    const T* value = wanted.data_as<T>();
    parallel_for(0, wanted.numel(), 4096, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const bool in = search ? value[i] == value[i] && std::binary_search(list.begin(), list.end(), value[i])
                               : std::find(list.begin(), list.end(), value[i]) != list.end();
        found[i] = in != invert;
      }
    });
  });
}

IntegerRange integer_range(const TensorBase& t) {
  const TensorBase dense = contiguous_as(t, DType::int64);
  const int64_t* p = dense.data_as<int64_t>();
  IntegerRange r{p[0], p[0]};
  for (int64_t i = 1; i < dense.numel(); ++i) {
    r.lowest = std::min(r.lowest, p[i]);
    r.highest = std::max(r.highest, p[i]);
  }
  return r;
}

void bincount(const TensorBase& self, const TensorBase& weights, const TensorBase& out) {
  fill(out, 0);
  const TensorBase at = contiguous_as(self, DType::int64);
  const int64_t* p = at.data_as<int64_t>();
  const int64_t n = at.numel();
  if (!weights.defined()) {
    auto* counts = out.mutable_data_as<int64_t>();
    for (int64_t i = 0; i < n; ++i) ++counts[p[i]];
    return;
  }
  const TensorBase w = contiguous_as(weights, out.dtype());
  const auto add = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* sums = out.mutable_data_as<T>();
    const T* x = w.data_as<T>();
    for (int64_t i = 0; i < n; ++i) sums[p[i]] += x[i];
  };
  if (out.dtype() == DType::float32)
    add(TypeTag<float>{});
  else
    add(TypeTag<double>{});
}

}  // namespace calque::kernel
