#include "kernel/cpu/gemm/outer.h"

#include <algorithm>

#include "kernel/cpu/elementwise/element_loop.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

template <class T>
struct Scales {
  T beta, alpha;
  bool boolean;
  NormalizeFn round;
};

template <class T>
void add_outer_run(void* const* arrays, int64_t n, const void* parameters) {
  const auto& s = *static_cast<const Scales<T>*>(parameters);
  T* const out = static_cast<T*>(arrays[0]);
  const T* const self = static_cast<const T*>(arrays[1]);
  const T* const column = static_cast<const T*>(arrays[2]);
  const T* const row = static_cast<const T*>(arrays[3]);
  if (s.boolean) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<T>((s.beta != 0 && self[i] != 0) || (s.alpha != 0 && column[i] != 0 && row[i] != 0));
    return;
  }
  constexpr int64_t most = 256;
  T product[most], summand[most];
  const auto rounded = [&](T* values, int64_t count) {
    if (s.round) s.round(values, count);
  };
  for (int64_t at = 0; at < n; at += most) {
    const int64_t count = std::min(most, n - at);
    using U = std::conditional_t<is_integral_type<T>, uint64_t, T>;  // integers wrap
    const auto times = [](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); };
    for (int64_t i = 0; i < count; ++i) product[i] = times(s.alpha, column[at + i]);
    rounded(product, count);
    for (int64_t i = 0; i < count; ++i) product[i] = times(product[i], row[at + i]);
    rounded(product, count);
    if (s.beta != 0) {
      for (int64_t i = 0; i < count; ++i) summand[i] = times(s.beta, self[at + i]);
      rounded(summand, count);
      for (int64_t i = 0; i < count; ++i)
        product[i] = static_cast<T>(static_cast<U>(summand[i]) + static_cast<U>(product[i]));
    }
    std::copy_n(product, count, out + at);
  }
}

template <class T>
T number(const Scalar& s) {
  if constexpr (is_integral_type<T>)
    return s.to_int();
  else
    return static_cast<T>(s.to_double());
}

template <class T>
void run(ElementLoop& loop, const Scalar& beta, const Scalar& alpha, DType dtype) {
  Scales<T> scales{number<T>(beta), number<T>(alpha), dtype == DType::bool_,
                   is_reduced_float(dtype) ? normalize_fn(dtype) : nullptr};
  if (scales.round) {
    scales.round(&scales.beta, 1);
    scales.round(&scales.alpha, 1);
  }
  loop.run(add_outer_run<T>, &scales);
}

}  // namespace

void add_outer(const TensorBase& self, const TensorBase& column, const TensorBase& row, const Scalar& beta,
               const Scalar& alpha, const TensorBase& out) {
  ElementLoop loop(out.dtype());
  loop.output(out).input(self).input(column).input(row);
  switch (loop.compute()) {
    case Compute::f32: return run<float>(loop, beta, alpha, out.dtype());
    case Compute::f64: return run<double>(loop, beta, alpha, out.dtype());
    case Compute::i64: return run<int64_t>(loop, beta, alpha, out.dtype());
    case Compute::c128: not_implemented("addr", out.dtype());
  }
}

}  // namespace calque::kernel
