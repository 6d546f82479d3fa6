#include "kernel/cpu/index/unique.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/index/index.h"
#include "kernel/cpu/index/sort.h"
#include "kernel/cpu/reduce/reduce_ops.h"

namespace calque::kernel {
namespace {

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (is_arithmetic_type<T>)
    return a == b;
  else
    return static_cast<float>(a) == static_cast<float>(b);
}

template <class F>
void with_numbers(DType d, F&& fn) {
  dispatch(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_number<T>)
      fn(tag);
    else
      throw UserError(ErrorKind::unsupported_operator, "unique: not implemented for '" + std::string(name(d)) + "'");
  });
}

TensorBase take_counts(const std::vector<int64_t>& counts) {
  const TensorBase out = make_tensor({static_cast<int64_t>(counts.size())}, DType::int64);
  std::copy(counts.begin(), counts.end(), out.mutable_data_as<int64_t>());
  return out;
}

// Rows (slices made contiguous) of `width` elements, in this order: which begin a new group.
template <class Equal>
void group(const std::vector<int64_t>& order, int64_t* inverse, std::vector<int64_t>& firsts, std::vector<int64_t>& counts,
           Equal&& equal) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !equal(order[i - 1], order[i])) {
      firsts.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[order[i]] = static_cast<int64_t>(firsts.size()) - 1;
  }
}

}  // namespace

Unique unique_elements(const TensorBase& self, bool sorted) {
  const TensorBase flat = flattened(self);
  const int64_t n = flat.numel();
  Unique out;
  out.inverse = make_tensor(self.sizes(), DType::int64);
  std::vector<int64_t> order(static_cast<size_t>(n));
  if (sorted && n > 0) {
    const TensorBase values = make_tensor({n}, self.dtype());
    const TensorBase indices = make_tensor({n}, DType::int64);
    sort(flat, 0, false, true, values, indices);
    std::copy_n(indices.data_as<int64_t>(), n, order.begin());
  } else {
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  std::vector<int64_t> firsts, counts;
  with_numbers(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = flat.data_as<T>();
    group(order, out.inverse.mutable_data_as<int64_t>(), firsts, counts,
          [p](int64_t a, int64_t b) { return same(p[a], p[b]); });
    out.values = make_tensor({static_cast<int64_t>(firsts.size())}, self.dtype());
    T* to = out.values.template mutable_data_as<T>();
    for (size_t i = 0; i < firsts.size(); ++i) to[i] = p[firsts[i]];
  });
  out.counts = take_counts(counts);
  return out;
}

Unique unique_slices(const TensorBase& self, int64_t dim, bool sorted) {
  const int64_t n = self.sizes()[static_cast<size_t>(dim)];
  SymInts sizes, strides;
  sizes.push_back(n);
  strides.push_back(self.sym_strides()[static_cast<size_t>(dim)]);
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if (static_cast<int64_t>(d) == dim) continue;
    sizes.push_back(self.sym_sizes()[d]);
    strides.push_back(self.sym_strides()[d]);
  }
  const TensorBase rows = flattened(make_view(self, sizes, strides, self.sym_storage_offset()));
  const int64_t width = n == 0 ? 0 : rows.numel() / n;
  Unique out;
  out.inverse = make_tensor({n}, DType::int64);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<int64_t> firsts, counts;
  with_numbers(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = rows.data_as<T>();
    if (sorted)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        for (int64_t j = 0; j < width; ++j) {
          if (less(p[a * width + j], p[b * width + j])) return true;
          if (less(p[b * width + j], p[a * width + j])) return false;
        }
        return false;
      });
    group(order, out.inverse.mutable_data_as<int64_t>(), firsts, counts, [&](int64_t a, int64_t b) {
      for (int64_t j = 0; j < width; ++j)
        if (!same(p[a * width + j], p[b * width + j])) return false;
      return true;
    });
    const auto found = static_cast<int64_t>(firsts.size());
    sizes[0] = found;
    const TensorBase dense = make_tensor(Meta{sizes, contiguous_strides(sizes), self.dtype(), self.device()});
    T* to = dense.mutable_data_as<T>();
    for (size_t i = 0; i < firsts.size(); ++i)
      std::copy_n(p + firsts[i] * width, width, to + static_cast<int64_t>(i) * width);
    // The slices' dimension back in its place.
    SymInts back_sizes, back_strides;
    for (size_t d = 1; d < sizes.size(); ++d) {
      back_sizes.push_back(sizes[d]);
      back_strides.push_back(dense.sym_strides()[d]);
    }
    back_sizes.insert(back_sizes.begin() + dim, sizes[0]);
    back_strides.insert(back_strides.begin() + dim, dense.sym_strides()[0]);
    out.values = make_view(dense, back_sizes, back_strides, 0);
  });
  out.counts = take_counts(counts);
  return out;
}

}  // namespace calque::kernel
