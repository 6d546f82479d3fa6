#include "kernel/cpu/reduce/norm.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/reduce/norm_support.h"
#include "kernel/cpu/reduce/reduce.h"
#include "kernel/cpu/require.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(NormRow, norm_table)

const NormRow& norm_row(DType d, const char* what) { return float_row(norm_table(), d, what); }

template <class C>
ParameterArray<C>::ParameterArray(const TensorBase& t) {
  if (!t.defined() || t.numel() == 0) return;
  if (t.dtype() == dtype_v<C> && t.is_contiguous()) {
    data_ = t.data_as<C>();
    return;
  }
  copy_.resize(static_cast<size_t>(t.numel()));
  const TensorBase dense = contiguous_as(t, t.dtype());
  load_fn(t.dtype(), compute_of<C>)(dense.data(), dense.element_size(), copy_.data(), t.numel());
  data_ = copy_.data();
}
template class ParameterArray<float>;
template class ParameterArray<double>;

namespace {

// One statistic of row i, rounded to the tensor's dtype.
void put(const TensorBase& t, int64_t i, double value) {
  if (!t.defined()) return;
  char* at = static_cast<char*>(t.mutable_data()) + i * t.element_size();
  store_fn(Compute::f64, t.dtype())(&value, at, t.element_size(), 1);
}

// Count, mean and squared deviations of a row. Short rows, where one cancelled sum is all there is, are summed in double.
// PyTorch updates its mean value by value, so that an infinity leaves none (the next difference is NaN) unless it comes
// last: in the last lane of the last whole vector of 256 bits.
Moments row_moments(const NormRow& row, const void* x, int64_t n, DType dtype) {
  constexpr int64_t most = 64;
  Moments m;
  if (n <= most) {
    double values[most];
    load_fn(dtype, Compute::f64)(x, static_cast<int64_t>(item_size(dtype)), values, n);
    for (int64_t i = 0; i < n; ++i) m.mean += values[i];
    m.mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) m.squares += (values[i] - m.mean) * (values[i] - m.mean);
    m.count = static_cast<double>(n);
  } else {
    row.moments(x, n, m);
  }
  if (std::isinf(m.mean)) {
    const int64_t lanes = 32 / static_cast<int64_t>(item_size(dtype));
    const int64_t last = n / lanes * lanes - 1;
    std::vector<double> values(static_cast<size_t>(n));
    load_fn(dtype, Compute::f64)(x, static_cast<int64_t>(item_size(dtype)), values.data(), n);
    int64_t infinite = 0;
    for (const double v : values) infinite += std::isinf(v) ? 1 : 0;
    if (infinite > 1 || (infinite == 1 && (last < 0 || !std::isinf(values[static_cast<size_t>(last)]))))
      m.mean = std::nan("");
  }
  return m;
}

// 1 / sqrt(var + eps), rounded to float32 for everything but float64 as the statistics of PyTorch are.
double inverse_root(double var, double eps, bool is_double) {
  if (is_double) return 1 / std::sqrt(var + eps);
  return static_cast<double>(1 / std::sqrt(static_cast<float>(var) + static_cast<float>(eps)));
}

// fn(number of the row, its n elements, where its result goes) for all rows of the input, on several threads.
template <class F>
void for_each_row(const TensorBase& input, int64_t n, const TensorBase& out, F&& fn) {
  if (n == 0) return;
  const int64_t rows = input.numel() / n;
  const int64_t bytes = n * static_cast<int64_t>(input.element_size());
  const char* x = static_cast<const char*>(input.data());
  char* y = static_cast<char*>(out.mutable_data());
  parallel_for(0, rows, std::max<int64_t>(1, norm_grain / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i, x + i * bytes, y + i * bytes);
  });
}

template <class C>
void layer_norm_as(const NormRow& row, const TensorBase& input, int64_t n, const TensorBase& weight, const TensorBase& bias,
                   double eps, const TensorBase& out, const TensorBase& mean, const TensorBase& rstd) {
  const ParameterArray<C> w(weight);
  const ParameterArray<C> b(bias);
  for_each_row(input, n, out, [&](int64_t i, const char* x, char* y) {
    const Moments m = row_moments(row, x, n, input.dtype());
    const double r = inverse_root(m.squares / m.count, eps, std::is_same_v<C, double>);
    row.normalize(x, n, m.mean, r, w.data(), b.data(), y);
    put(mean, i, m.mean);
    put(rstd, i, r);
  });
}

template <class C>
void rms_norm_as(const NormRow& row, const TensorBase& input, int64_t n, const TensorBase& weight, double eps,
                 const TensorBase& out, const TensorBase& rstd) {
  const ParameterArray<C> w(weight);
  for_each_row(input, n, out, [&](int64_t i, const char* x, char* y) {
    const double r = inverse_root(row.mean_square(x, n), eps, std::is_same_v<C, double>);
    row.normalize(x, n, 0, r, w.data(), nullptr, y);
    put(rstd, i, r);
  });
}

void fill_empty(const TensorBase& t, double value) {
  if (!t.defined()) return;
  for (int64_t i = 0; i < t.numel(); ++i) put(t, i, value);
}

}  // namespace

void layer_norm(const TensorBase& input, int64_t n, const TensorBase& weight, const TensorBase& bias, double eps,
                const TensorBase& out, const TensorBase& mean, const TensorBase& rstd) {
  const NormRow& row = norm_row(input.dtype(), "LayerNormKernelImpl");
  if (input.numel() == 0) {  // rows of nothing have statistics all the same
    fill_empty(mean, 0);
    fill_empty(rstd, std::nan(""));
    return;
  }
  const TensorBase x = contiguous_as(input, input.dtype());
  if (input.dtype() == DType::float64)
    layer_norm_as<double>(row, x, n, weight, bias, eps, out, mean, rstd);
  else
    layer_norm_as<float>(row, x, n, weight, bias, eps, out, mean, rstd);
}

void rms_norm(const TensorBase& input, int64_t n, const TensorBase& weight, double eps, const TensorBase& out,
              const TensorBase& rstd) {
  const NormRow& row = norm_row(input.dtype(), "rms_norm");
  if (input.numel() == 0) return fill_empty(rstd, std::nan(""));
  const TensorBase x = contiguous_as(input, input.dtype());
  if (input.dtype() == DType::float64)
    rms_norm_as<double>(row, x, n, weight, eps, out, rstd);
  else
    rms_norm_as<float>(row, x, n, weight, eps, out, rstd);
}

// ---- batch norm ---------------------------------------------------------------------------------------------------
namespace {

struct Channels {
  int64_t n, c, hw;
};
Channels channels_of(const TensorBase& t) {
  Channels s{t.size(0), t.size(1), 1};
  for (int64_t d = 2; d < t.dim(); ++d) s.hw *= t.size(d);
  return s;
}

bool is_channels_last(const TensorBase& t) {
  return (t.dim() == 4 && t.is_contiguous(MemoryFormat::channels_last)) ||
         (t.dim() == 5 && t.is_contiguous(MemoryFormat::channels_last_3d));
}

bool is_dense(const TensorBase& t) { return t.is_contiguous() || is_channels_last(t); }

// What is done to each channel (of each image): y = (x - center) * scale + shift.
template <class C>
struct ChannelMap {
  std::vector<C> center, scale, shift;
  explicit ChannelMap(int64_t n) : center(static_cast<size_t>(n)), scale(center.size()), shift(center.size()) {}

  // Subtracting first is the more exact: values close to each other have a large scale. PyTorch multiplies first where the
  // input is dense, which shows where the scale or the mean is not finite.
  void set(size_t i, double mean, C factor, C bias, bool dense) {
    scale[i] = factor;
    if (dense && !(std::isfinite(mean) && std::isfinite(factor))) {
      center[i] = 0;
      shift[i] = bias - static_cast<C>(mean) * factor;
      return;
    }
    center[i] = static_cast<C>(mean);
    const double rest = mean - static_cast<double>(center[i]);
    shift[i] = std::isfinite(rest) && std::isfinite(factor)
                   ? static_cast<C>(static_cast<double>(bias) - rest * static_cast<double>(factor))
                   : bias;
  }
};

// `per_image`: the map has N x C entries.
template <class C>
void affine_channels(const NormRow& row, const TensorBase& input, const ChannelMap<C>& map, bool per_image,
                     const TensorBase& out) {
  const Channels s = channels_of(input);
  const auto item = input.element_size();
  const bool last = !out.is_contiguous() && is_channels_last(out);
  TensorBase x = input;
  if (last ? !is_channels_last(input) : !input.is_contiguous()) {
    x = make_tensor(out.meta());
    copy(input, x);
  }
  const char* from = static_cast<const char*>(x.data());
  char* to = static_cast<char*>(out.mutable_data());
  if (last || s.hw == 1) {
    parallel_for(0, s.n * s.hw, std::max<int64_t>(1, norm_grain / std::max<int64_t>(1, s.c)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t image = per_image ? i / s.hw * s.c : 0;
        row.affine_each(from + i * s.c * item, s.c, map.center.data() + image, map.scale.data() + image,
                        map.shift.data() + image, to + i * s.c * item);
      }
    });
  } else {
    parallel_for(0, s.n * s.c, std::max<int64_t>(1, norm_grain / std::max<int64_t>(1, s.hw)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const auto at = static_cast<size_t>(per_image ? i : i % s.c);
        row.affine(from + i * s.hw * item, s.hw, static_cast<double>(map.center[at]), static_cast<double>(map.scale[at]),
                   static_cast<double>(map.shift[at]), to + i * s.hw * item);
      }
    });
  }
}

template <class C>
void batch_norm_inference_as(const NormRow& row, const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                             const TensorBase& mean, const TensorBase& var, double eps, const TensorBase& out) {
  const ParameterArray<C> w(weight), b(bias), m(mean), v(var);
  const auto c = static_cast<size_t>(input.size(1));
  const bool dense = is_dense(input);
  ChannelMap<C> map(input.size(1));
  for (size_t i = 0; i < c; ++i) {
    const C scale = 1 / std::sqrt(v.data()[i] + static_cast<C>(eps)) * (w.data() ? w.data()[i] : C{1});
    map.set(i, static_cast<double>(m.data()[i]), scale, b.data() ? b.data()[i] : C{0}, dense);
  }
  affine_channels(row, input, map, false, out);
}

uint64_t all_but_channels(const TensorBase& t) { return ((uint64_t{1} << t.dim()) - 1) & ~uint64_t{2}; }

template <class C>
void batch_norm_training_as(const NormRow& row, const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                            const TensorBase& running_mean, const TensorBase& running_var, double momentum, double eps,
                            const TensorBase& out, const TensorBase& save_mean, const TensorBase& save_invstd) {
  const ParameterArray<C> w(weight), b(bias);
  const Channels s = channels_of(input);
  const auto c = static_cast<size_t>(s.c);
  const TensorBase mean = make_tensor({s.c}, DType::float64);
  const TensorBase var = make_tensor({s.c}, DType::float64);
  ReduceParameters parameters;
  parameters.p = 0;
  reduce(Reduction::variance, input.dtype(), input, all_but_channels(input), var, mean, parameters);
  ChannelMap<C> map(s.c);
  const bool dense = is_dense(input);
  const double* m = mean.data_as<double>();
  // Means of blocks cannot be combined where one is infinite; their sum can.
  if (std::any_of(m, m + c, [](double v) { return std::isnan(v); }))
    reduce(Reduction::mean, input.dtype(), input, all_but_channels(input), mean);
  const double* v = var.data_as<double>();
  const auto count = static_cast<double>(s.n * s.hw);
  for (size_t i = 0; i < c; ++i) {
    const double invstd = v[i] == 0 && eps == 0 ? 0 : 1 / std::sqrt(v[i] + eps);
    put(save_mean, static_cast<int64_t>(i), m[i]);
    put(save_invstd, static_cast<int64_t>(i), invstd);
    map.set(i, m[i], static_cast<C>(invstd) * (w.data() ? w.data()[i] : C{1}), b.data() ? b.data()[i] : C{0}, dense);
    const auto move = [&](const TensorBase& running, double target) {
      if (!running.defined()) return;
      double before = 0;
      const int64_t step = running.stride(0) * running.element_size();
      char* at = static_cast<char*>(running.mutable_data()) + static_cast<int64_t>(i) * step;
      load_fn(running.dtype(), Compute::f64)(at, step, &before, 1);
      if (std::isnan(before)) return;
      const double after = momentum * target + (1 - momentum) * before;
      store_fn(Compute::f64, running.dtype())(&after, at, step, 1);
    };
    move(running_mean, m[i]);
    move(running_var, v[i] * count / (count - 1));
  }
  affine_channels(row, input, map, false, out);
}

}  // namespace

void batch_norm_inference(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, const TensorBase& mean,
                          const TensorBase& var, double eps, const TensorBase& out) {
  const NormRow& row = norm_row(input.dtype(), "batch_norm");
  if (input.numel() == 0) return;
  if (input.dtype() == DType::float64)
    batch_norm_inference_as<double>(row, input, weight, bias, mean, var, eps, out);
  else
    batch_norm_inference_as<float>(row, input, weight, bias, mean, var, eps, out);
}

void batch_norm_training(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                         const TensorBase& running_mean, const TensorBase& running_var, double momentum, double eps,
                         const TensorBase& out, const TensorBase& save_mean, const TensorBase& save_invstd) {
  const NormRow& row = norm_row(input.dtype(), "batch_norm");
  if (input.dtype() == DType::float64)
    batch_norm_training_as<double>(row, input, weight, bias, running_mean, running_var, momentum, eps, out, save_mean,
                                   save_invstd);
  else
    batch_norm_training_as<float>(row, input, weight, bias, running_mean, running_var, momentum, eps, out, save_mean,
                                  save_invstd);
}

// ---- group norm ---------------------------------------------------------------------------------------------------
namespace {

template <class C>
void group_norm_as(const NormRow& row, const TensorBase& input, const TensorBase& weight, const TensorBase& bias, int64_t n,
                   int64_t c, int64_t hw, int64_t groups, double eps, const TensorBase& out, const TensorBase& mean,
                   const TensorBase& rstd) {
  const ParameterArray<C> w(weight), b(bias);
  const int64_t size = c / groups * hw;
  std::vector<double> means(static_cast<size_t>(n * groups)), rstds(means.size());
  const bool last = !input.is_contiguous() && is_channels_last(input);
  if (last) {
    // Images as N x HW x groups x channels of a group.
    const TensorBase view =
        make_view(input, {n, hw, groups, c / groups}, {c * hw, c, c / groups, 1}, input.sym_storage_offset());
    const TensorBase m = make_tensor({n, groups}, DType::float64);
    const TensorBase v = make_tensor({n, groups}, DType::float64);
    ReduceParameters parameters;
    parameters.p = 0;
    reduce(Reduction::variance, input.dtype(), view, 0b1010, v, m, parameters);
    for (size_t i = 0; i < means.size(); ++i) {
      means[i] = m.data_as<double>()[i];
      rstds[i] = inverse_root(v.data_as<double>()[i], eps, std::is_same_v<C, double>);
    }
  } else {
    const char* x = static_cast<const char*>(input.data());
    parallel_for(0, n * groups, std::max<int64_t>(1, norm_grain / size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Moments m = row_moments(row, x + i * size * input.element_size(), size, input.dtype());
        means[static_cast<size_t>(i)] = m.mean;
        rstds[static_cast<size_t>(i)] = inverse_root(m.squares / m.count, eps, std::is_same_v<C, double>);
      }
    });
  }
  ChannelMap<C> map(n * c);
  for (int64_t i = 0; i < n * c; ++i) {
    const auto g = static_cast<size_t>(i / (c / groups));
    const auto channel = i % c;
    map.set(static_cast<size_t>(i), means[g], static_cast<C>(rstds[g]) * (w.data() ? w.data()[channel] : C{1}),
            b.data() ? b.data()[channel] : C{0}, true);
  }
  for (size_t i = 0; i < means.size(); ++i) {
    put(mean, static_cast<int64_t>(i), means[i]);
    put(rstd, static_cast<int64_t>(i), rstds[i]);
  }
  affine_channels(row, input, map, true, out);
}

}  // namespace

void group_norm(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, int64_t n, int64_t c, int64_t hw,
                int64_t groups, double eps, const TensorBase& out, const TensorBase& mean, const TensorBase& rstd) {
  const NormRow& row = norm_row(input.dtype(), "GroupNormKernelImpl");
  if (input.dim() < 2 || input.size(0) != n || input.size(1) != c) {  // other sizes, of as many elements
    if (!input.is_contiguous() || !out.is_contiguous())
      refuse_sizes("native_group_norm", "input", input, "N = " + std::to_string(n) + " and C = " + std::to_string(c));
    const SymInts sizes{n, c, hw}, strides = contiguous_strides(sizes);
    return group_norm(make_view(input, sizes, strides, input.sym_storage_offset()), weight, bias, n, c, hw, groups, eps,
                      make_view(out, sizes, strides, out.sym_storage_offset()), mean, rstd);
  }
  if (input.numel() == 0) {
    fill_empty(mean, 0);
    fill_empty(rstd, std::nan(""));
    return;
  }
  const TensorBase x = !input.is_contiguous() && is_channels_last(input) ? input : contiguous_as(input, input.dtype());
  if (input.dtype() == DType::float64)
    group_norm_as<double>(row, x, weight, bias, n, c, hw, groups, eps, out, mean, rstd);
  else
    group_norm_as<float>(row, x, weight, bias, n, c, hw, groups, eps, out, mean, rstd);
}

}  // namespace calque::kernel
