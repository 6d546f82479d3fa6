#include "kernel/cpu/reduce/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/index/slices.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

template <class C>
C wrapping(C a, C b, bool is_product) {
  if constexpr (std::is_same_v<C, int64_t>) {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    return static_cast<C>(is_product ? x * y : x + y);
  } else {
    return is_product ? a * b : a + b;
  }
}

// log(exp(a) + exp(b)) without overflow; NaN wins.
template <class C>
C log_add_exp(C a, C b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<C>::quiet_NaN();
  const C low = std::min(a, b);
  const C high = std::max(a, b);
  if (low != high || std::isfinite(low)) return high + std::log1p(std::exp(low - high));
  return low;
}

template <Scan fn, class C>
C next(C acc, C x) {
  if constexpr (fn == Scan::logsumexp) {
    if constexpr (std::is_floating_point_v<C>)
      return log_add_exp(x, acc);
    else
      return acc;
  } else {
    return wrapping(acc, x, fn == Scan::prod);
  }
}
template <Scan fn, class C>
C first_value() {
  if constexpr (fn == Scan::sum)
    return C{0};
  else if constexpr (fn == Scan::prod)
    return C{1};
  else
    return std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : C{0};
}

constexpr int64_t piece = 1024;
constexpr int64_t columns = 32;

template <Scan fn, class C>
void run(const TensorBase& self, int64_t dim, const TensorBase& out) {
  constexpr Compute c = compute_of<C>;
  const LoadFn load = load_fn(self.dtype(), c);
  const NormalizeFn normalize =
      self.dtype() != out.dtype() && compute_type(out.dtype()) == c ? normalize_fn(out.dtype()) : nullptr;
  const StoreFn store = store_fn(c, out.dtype());
  const Slices slices(dim, {&self, &out});
  const int64_t n = slices.length();
  const int64_t from_step = slices.step(0);
  const int64_t to_step = slices.step(1);
  const bool by_rows = slices.neighbours() < 8 || from_step == self.element_size();
  const int64_t width = by_rows ? 1 : std::min(columns, slices.neighbours());
  slices.parallel(width, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n * width)), [&](char* const* at, int64_t count) {
    alignas(64) C buffer[piece];
    if (by_rows) {
      C acc = first_value<fn, C>();
      for (int64_t i = 0; i < n; i += piece) {
        const int64_t m = std::min(piece, n - i);
        load(at[0] + i * from_step, from_step, buffer, m);
        if (normalize) normalize(buffer, m);
        for (int64_t k = 0; k < m; ++k) buffer[k] = acc = next<fn>(acc, buffer[k]);
        store(buffer, at[1] + i * to_step, to_step, m);
      }
    } else {
      C acc[columns];
      std::fill_n(acc, columns, first_value<fn, C>());
      for (int64_t i = 0; i < n; ++i) {
        load(at[0] + i * from_step, slices.neighbour_step(0), buffer, count);
        if (normalize) normalize(buffer, count);
        for (int64_t k = 0; k < count; ++k) acc[k] = next<fn>(acc[k], buffer[k]);
        store(acc, at[1] + i * to_step, slices.neighbour_step(1), count);
      }
    }
  });
}

template <Scan fn>
void run(const TensorBase& self, int64_t dim, const TensorBase& out) {
  const DType d = out.dtype();
  // A narrow result of a wider input: the cast comes first, and it is done in the narrow dtype's compute type.
  if (is_integral(d))
    run<fn, int64_t>(self, dim, out);
  else if (is_reduced_float(d) || fn == Scan::logsumexp) {
    if (d == DType::float64)
      run<fn, double>(self, dim, out);
    else
      run<fn, float>(self, dim, out);
  } else
    run<fn, double>(self, dim, out);
}

template <class C>
void run_extreme(bool largest, const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices) {
  constexpr Compute c = compute_of<C>;
  const LoadFn load = load_fn(self.dtype(), c);
  const StoreFn store = store_fn(c, values.dtype());
  const StoreFn store_index = store_fn(Compute::i64, indices.dtype());
  const Slices slices(dim, {&self, &values, &indices});
  const int64_t n = slices.length();
  slices.parallel(1, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)), [&](char* const* at, int64_t) {
    C buffer[piece];
    int64_t where[piece];
    C best{};
    int64_t position = 0;
    for (int64_t i = 0; i < n; i += piece) {
      const int64_t m = std::min(piece, n - i);
      load(at[0] + i * slices.step(0), slices.step(0), buffer, m);
      for (int64_t k = 0; k < m; ++k) {
        const C x = buffer[k];
        bool wins = i + k == 0 || (largest ? x >= best : x <= best);
        if constexpr (std::is_floating_point_v<C>) wins = wins || std::isnan(x) || false;
        if (wins) {
          best = x;
          position = i + k;
        }
        buffer[k] = best;
        where[k] = position;
      }
      store(buffer, at[1] + i * slices.step(1), slices.step(1), m);
      store_index(where, at[2] + i * slices.step(2), slices.step(2), m);
    }
  });
}

}  // namespace

void scan(Scan fn, const TensorBase& self, int64_t dim, const TensorBase& out) {
  if (out.numel() == 0) return;
  switch (fn) {
    case Scan::sum: return run<Scan::sum>(self, dim, out);
    case Scan::prod: return run<Scan::prod>(self, dim, out);
    case Scan::logsumexp: return run<Scan::logsumexp>(self, dim, out);
  }
}

void scan_extreme(bool largest, const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices) {
  if (values.numel() == 0) return;
  switch (compute_type(self.dtype())) {
    case Compute::f32: return run_extreme<float>(largest, self, dim, values, indices);
    case Compute::f64: return run_extreme<double>(largest, self, dim, values, indices);
    case Compute::i64: return run_extreme<int64_t>(largest, self, dim, values, indices);
    case Compute::c128: not_implemented("cummin_cummax", self.dtype());
  }
}

}  // namespace calque::kernel
