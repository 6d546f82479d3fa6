#include "kernel/cpu/loss/distance.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

constexpr int64_t distance_grain = 16384;  // multiplications

// Sums in double: a difference of two floats is exact enough there, and so is its square.
template <class C>
C distance(const C* a, const C* b, int64_t n, double p) {
  double total = 0;
  if (p == 2) {
    for (int64_t i = 0; i < n; ++i) {
      const auto d = static_cast<double>(a[i] - b[i]);
      total += d * d;
    }
    return static_cast<C>(std::sqrt(total));
  }
  if (p == 1) {
    for (int64_t i = 0; i < n; ++i) total += static_cast<double>(std::abs(a[i] - b[i]));
    return static_cast<C>(total);
  }
  if (p == 0) {
    for (int64_t i = 0; i < n; ++i) {
      const C d = a[i] - b[i];
      total += std::isnan(d) ? static_cast<double>(d) : d != 0 ? 1 : 0;
    }
    return static_cast<C>(total);
  }
  if (std::isinf(p)) {
    C most = 0;
    for (int64_t i = 0; i < n; ++i) {
      const C d = std::abs(a[i] - b[i]);
      if (d > most || std::isnan(d)) most = d;
    }
    return most;
  }
  for (int64_t i = 0; i < n; ++i) total += std::pow(static_cast<double>(std::abs(a[i] - b[i])), p);
  return static_cast<C>(std::pow(total, 1 / p));
}

// Contiguous, broadcast to `sizes` in all but the last two dimensions.
TensorBase prepared(const TensorBase& t, const TensorBase& out) {
  SmallVector<int64_t, 8> sizes(out.sizes().begin(), out.sizes().end());
  const size_t n = sizes.size();
  sizes[n - 2] = t.size(-2);
  sizes[n - 1] = t.size(-1);
  if (t.is_contiguous() && std::equal(sizes.begin(), sizes.end(), t.sizes().begin(), t.sizes().end())) return t;
  const TensorBase dense = make_tensor(sizes, t.dtype());
  copy(t, dense);
  return dense;
}

void check_dtype(const char* what, DType d) {
  if (d != DType::float32 && d != DType::float64) not_implemented(what, d);
}

template <class C>
void cdist_as(const TensorBase& x1, const TensorBase& x2, double p, const TensorBase& out) {
  const TensorBase a = prepared(x1, out);
  const TensorBase b = prepared(x2, out);
  const int64_t m = x1.size(-1);
  const int64_t rows = x1.size(-2);
  const int64_t columns = x2.size(-2);
  C* y = out.mutable_data_as<C>();
  const C* ap = a.data_as<C>();
  const C* bp = b.data_as<C>();
  parallel_for(0, out.numel() / columns, std::max<int64_t>(1, distance_grain / (m * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   for (int64_t j = 0; j < columns; ++j)
                     y[i * columns + j] = distance(ap + i * m, bp + (i / rows * columns + j) * m, m, p);
               });
}

template <class C>
void pdist_as(const TensorBase& self, double p, const TensorBase& out) {
  const int64_t n = self.size(0);
  const int64_t m = self.size(1);
  C* y = out.mutable_data_as<C>();
  const C* x = self.data_as<C>();
  parallel_for(0, n, std::max<int64_t>(1, distance_grain / std::max<int64_t>(1, m * n)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C* row = y + i * (2 * n - i - 1) / 2;
      for (int64_t j = i + 1; j < n; ++j) row[j - i - 1] = distance(x + i * m, x + j * m, m, p);
    }
  });
}

// The derivative of a distance by one difference.
double slope_of_distance(double difference, double distance, double p) {
  const double sign = difference > 0 ? 1 : difference < 0 ? -1 : difference;
  const double size = std::abs(difference);
  if (p == 1) return sign;
  if (distance == 0) return 0;
  if (p == 2) return difference / distance;
  if (std::isinf(p)) return size == distance ? sign : 0;
  if (p < 2) return difference == 0 && p < 1 ? 0 : sign * std::pow(size, p - 1) / std::pow(distance, p - 1);
  return difference * std::pow(size, p - 2) / std::pow(distance, p - 1);
}

template <class C>
void add_slope(const C* a, const C* b, int64_t m, double p, C grad, C distance, double sign, double* sums) {
  for (int64_t k = 0; k < m; ++k)
    sums[k] += sign * static_cast<double>(grad) *
               slope_of_distance(static_cast<double>(a[k] - b[k]), static_cast<double>(distance), p);
}

template <class C>
void cdist_backward_as(const TensorBase& grad, const TensorBase& x1, const TensorBase& x2, double p,
                       const TensorBase& distances, const TensorBase& out) {
  const int64_t m = x1.size(-1);
  const int64_t rows = x1.size(-2);
  const int64_t columns = x2.size(-2);
  SmallVector<int64_t, 8> pairs(out.sizes().begin(), out.sizes().end());
  pairs[pairs.size() - 1] = columns;
  const TensorBase shape = make_tensor(pairs, x1.dtype());
  const TensorBase a = prepared(x1, shape), b = prepared(x2, shape), g = prepared(grad, shape),
                   d = prepared(distances, shape);
  const C *ap = a.data_as<C>(), *bp = b.data_as<C>(), *gp = g.data_as<C>(), *dp = d.data_as<C>();
  C* y = out.mutable_data_as<C>();
  parallel_for(0, out.numel() / m, std::max<int64_t>(1, distance_grain / (m * columns)), [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(m));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t j = 0; j < columns; ++j)
        add_slope(ap + i * m, bp + (i / rows * columns + j) * m, m, p, gp[i * columns + j], dp[i * columns + j], 1,
                  sums.data());
      std::transform(sums.begin(), sums.end(), y + i * m, [](double x) { return static_cast<C>(x); });
    }
  });
}

template <class C>
void pdist_backward_as(const TensorBase& grad, const TensorBase& self, double p, const TensorBase& distances,
                       const TensorBase& out) {
  const int64_t n = self.size(0);
  const int64_t m = self.size(1);
  const C *x = self.data_as<C>(), *g = grad.data_as<C>(), *d = distances.data_as<C>();
  C* y = out.mutable_data_as<C>();
  parallel_for(0, n, std::max<int64_t>(1, distance_grain / std::max<int64_t>(1, m * n)), [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(m));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t j = 0; j < n; ++j) {
        if (i == j) continue;
        const int64_t first = std::min(i, j), second = std::max(i, j);
        const int64_t pair = first * (2 * n - first - 1) / 2 + second - first - 1;
        add_slope(x + first * m, x + second * m, m, p, g[pair], d[pair], i < j ? 1 : -1, sums.data());
      }
      std::transform(sums.begin(), sums.end(), y + i * m, [](double v) { return static_cast<C>(v); });
    }
  });
}

}  // namespace

void cdist_backward(const TensorBase& grad, const TensorBase& x1, const TensorBase& x2, double p,
                    const TensorBase& distances, const TensorBase& out) {
  if (out.numel() == 0) return;
  if (x2.size(-2) == 0 || grad.numel() == 0) return fill(out, Scalar(0));
  check_dtype("cdist_backward", x1.dtype());
  if (p == 0) return fill(out, Scalar(0));
  for (const TensorBase* t : {&grad, &x2, &distances})
    if (t->dtype() != x1.dtype()) not_implemented("_cdist_backward", t->dtype());
  if (x2.size(-1) != x1.size(-1))
    throw UserError("_cdist_backward: expected points of as many numbers in x1 and x2, found sizes " + str(x1.sizes()) +
                    " and " + str(x2.sizes()));
  for (const TensorBase* t : {&grad, &distances})
    if (t->dim() < 2 || t->size(-2) != x1.size(-2) || t->size(-1) != x2.size(-2))
      throw UserError("_cdist_backward: expected a number for each pair of " + std::to_string(x1.size(-2)) + " and " +
                      std::to_string(x2.size(-2)) + " points, found sizes " + str(t->sizes()));
  if (x1.dtype() == DType::float64)
    cdist_backward_as<double>(grad, x1, x2, p, distances, out);
  else
    cdist_backward_as<float>(grad, x1, x2, p, distances, out);
}

void pdist_backward(const TensorBase& grad, const TensorBase& self, double p, const TensorBase& distances,
                    const TensorBase& out) {
  if (out.numel() == 0) return;
  check_dtype("pdist_backward", self.dtype());
  if (self.size(0) < 2 || p == 0) return fill(out, Scalar(0));
  for (const TensorBase* t : {&grad, &distances})
    if (t->dtype() != self.dtype() || t->numel() != self.size(0) * (self.size(0) - 1) / 2)
      throw UserError("_pdist_backward: expected a distance of each pair in self's dtype, found " +
                      std::to_string(t->numel()) + " of " + std::string(name(t->dtype())));
  if (self.dtype() == DType::float64)
    pdist_backward_as<double>(grad, self, p, distances, out);
  else
    pdist_backward_as<float>(grad, self, p, distances, out);
}

void cdist(const TensorBase& x1, const TensorBase& x2, double p, const TensorBase& out) {
  if (out.numel() == 0) return;
  if (x1.size(-1) == 0) return fill(out, Scalar(0));
  check_dtype("cdist", x1.dtype());
  if (x1.dtype() == DType::float64)
    cdist_as<double>(x1, x2, p, out);
  else
    cdist_as<float>(x1, x2, p, out);
}

void pdist(const TensorBase& self, double p, const TensorBase& out) {
  if (out.numel() == 0) return;
  if (self.size(1) == 0) return fill(out, Scalar(0));
  check_dtype("pdist", self.dtype());
  if (self.dtype() == DType::float64)
    pdist_as<double>(self, p, out);
  else
    pdist_as<float>(self, p, out);
}

}  // namespace calque::kernel
