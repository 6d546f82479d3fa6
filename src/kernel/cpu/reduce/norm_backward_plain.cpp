#include "kernel/cpu/reduce/norm_backward_plain.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/reduce/norm_support.h"

namespace calque::kernel {
namespace {

// A result that is computed contiguous in C and written where it belongs afterwards.
template <class C>
class PlainTarget {
 public:
  explicit PlainTarget(const TensorBase& out) : out_(out) {
    if (!out.defined()) return;
    direct_ = out.dtype() == dtype_v<C> && out.is_contiguous();
    work_ = direct_ ? out : make_tensor(out.sizes(), dtype_v<C>);
    data_ = work_.numel() ? work_.template mutable_data_as<C>() : nullptr;
  }
  ~PlainTarget() = default;
  C* data() const { return data_; }
  bool wanted() const { return out_.defined(); }
  void write() const {
    if (out_.defined() && !direct_) copy(work_, out_);
  }

 private:
  const TensorBase& out_;
  TensorBase work_;
  C* data_ = nullptr;
  bool direct_ = true;
};

template <class C>
void write_plain_sums(const std::vector<double>& sums, const PlainTarget<C>& target) {
  if (!target.wanted()) return;
  for (size_t i = 0; i < sums.size(); ++i) target.data()[i] = static_cast<C>(sums[i]);
  target.write();
}

template <class C>
void layer_norm_plainly(const TensorBase& grad, const TensorBase& input, int64_t n, const TensorBase& mean,
                        const TensorBase& rstd, const TensorBase& weight, const TensorBase& grad_input,
                        const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const TensorBase g = contiguous_as(grad, dtype_v<C>);
  const TensorBase x = contiguous_as(input, dtype_v<C>);
  const ParameterArray<C> w(weight), m(mean), r(rstd);
  const PlainTarget<C> dx(grad_input), dw(grad_weight), db(grad_bias);
  const int64_t rows = n ? input.numel() / n : 0;
  const C* gp = rows ? g.data_as<C>() : nullptr;
  const C* xp = rows ? x.data_as<C>() : nullptr;
  const auto weight_at = [&](int64_t k) { return w.data() ? w.data()[k] : C{1}; };
  if (dx.wanted() && rows) {
    parallel_for(0, rows, std::max<int64_t>(1, norm_grain / n), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        double with_x = 0;
        double alone = 0;
        for (int64_t k = 0; k < n; ++k) {
          with_x +=
              static_cast<double>(gp[i * n + k]) * static_cast<double>(xp[i * n + k]) * static_cast<double>(weight_at(k));
          alone += static_cast<double>(gp[i * n + k]) * static_cast<double>(weight_at(k));
        }
        const auto a = static_cast<double>(r.data()[i]);
        const auto mu = static_cast<double>(m.data()[i]);
        const double slope = (alone * mu - with_x) * a * a * a / static_cast<double>(n);
        const double rest = -slope * mu - alone * a / static_cast<double>(n);
        for (int64_t k = 0; k < n; ++k) {
          const double straight = a * static_cast<double>(gp[i * n + k]) * static_cast<double>(weight_at(k));
          const auto xk = static_cast<double>(xp[i * n + k]);
          // In float64 the terms cancel as PyTorch's do, which are fused.
          if constexpr (std::is_same_v<C, double>)
            dx.data()[i * n + k] = std::fma(slope, xk, straight) + rest;
          else
            dx.data()[i * n + k] = static_cast<C>(slope * xk + straight + rest);
        }
      }
    });
  }
  dx.write();
  if (!dw.wanted() && !db.wanted()) return;
  std::vector<double> sum_w(static_cast<size_t>(n)), sum_b(static_cast<size_t>(n));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < n; ++k) {
      const auto at = static_cast<size_t>(k);
      const auto gi = static_cast<double>(gp[i * n + k]);
      const auto a = static_cast<double>(r.data()[i]);
      sum_w[at] += gi * (a * static_cast<double>(xp[i * n + k]) - a * static_cast<double>(m.data()[i]));
      sum_b[at] += gi;
    }
  write_plain_sums(sum_w, dw);
  write_plain_sums(sum_b, db);
}

template <class C>
void group_norm_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& mean, const TensorBase& rstd,
                        const TensorBase& weight, int64_t n, int64_t c, int64_t hw, int64_t groups,
                        const TensorBase& grad_input, const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const TensorBase g = contiguous_as(grad, dtype_v<C>);
  const TensorBase x = contiguous_as(input, dtype_v<C>);
  const ParameterArray<C> w(weight), m(mean), r(rstd);
  const PlainTarget<C> dx(grad_input), dw(grad_weight), db(grad_bias);
  const int64_t per_group = c / groups;
  const auto planes = static_cast<size_t>(n * c);
  const C* gp = g.numel() ? g.data_as<C>() : nullptr;
  const C* xp = g.numel() ? x.data_as<C>() : nullptr;
  // Sums of grad * x and of grad over each plane.
  std::vector<double> with_x(planes), alone(planes);
  parallel_for(0, n * c, std::max<int64_t>(1, norm_grain / std::max<int64_t>(1, hw)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      double p = 0;
      double q = 0;
      for (int64_t k = i * hw; k < (i + 1) * hw; ++k) {
        p += static_cast<double>(gp[k]) * static_cast<double>(xp[k]);
        q += static_cast<double>(gp[k]);
      }
      with_x[static_cast<size_t>(i)] = p;
      alone[static_cast<size_t>(i)] = q;
    }
  });
  if (dx.wanted() && hw) {
    parallel_for(0, n * groups, std::max<int64_t>(1, norm_grain / (per_group * hw)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        double p = 0;
        double q = 0;
        for (int64_t k = i * per_group; k < (i + 1) * per_group; ++k) {
          const auto wk = static_cast<double>(w.data() ? w.data()[k % c] : C{1});
          p += with_x[static_cast<size_t>(k)] * wk;
          q += alone[static_cast<size_t>(k)] * wk;
        }
        const auto a = static_cast<double>(r.data()[i]);
        const auto mu = static_cast<double>(m.data()[i]);
        const double slope = (q * mu - p) * a * a * a / static_cast<double>(per_group * hw);
        const double rest = -slope * mu - q * a / static_cast<double>(per_group * hw);
        for (int64_t k = i * per_group; k < (i + 1) * per_group; ++k) {
          const double scale = a * static_cast<double>(w.data() ? w.data()[k % c] : C{1});
          for (int64_t j = k * hw; j < (k + 1) * hw; ++j)
            dx.data()[j] = static_cast<C>(scale * static_cast<double>(gp[j]) + slope * static_cast<double>(xp[j]) + rest);
        }
      }
    });
  }
  dx.write();
  std::vector<double> sum_w(static_cast<size_t>(c)), sum_b(static_cast<size_t>(c));
  for (int64_t i = 0; i < n * c; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto channel = static_cast<size_t>(i % c);
    const int64_t group = i / per_group;
    sum_w[channel] += (with_x[at] - alone[at] * static_cast<double>(m.data()[group])) * static_cast<double>(r.data()[group]);
    sum_b[channel] += alone[at];
  }
  write_plain_sums(sum_w, dw);
  write_plain_sums(sum_b, db);
}

template <class C>
void batch_norm_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& weight,
                        const TensorBase& running_mean, const TensorBase& running_var, const TensorBase& save_mean,
                        const TensorBase& save_invstd, bool train, double eps, const TensorBase& grad_input,
                        const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const TensorBase g = contiguous_as(grad, dtype_v<C>);
  const TensorBase x = contiguous_as(input, dtype_v<C>);
  const ParameterArray<C> w(weight), m(train ? save_mean : running_mean), v(train ? save_invstd : running_var);
  const PlainTarget<C> dx(grad_input), dw(grad_weight), db(grad_bias);
  const int64_t n = input.size(0);
  const int64_t c = input.size(1);
  const int64_t hw = n * c != 0 ? input.numel() / (n * c) : 0;
  const auto count = static_cast<double>(n * hw);
  const C* gp = g.numel() ? g.data_as<C>() : nullptr;
  const C* xp = g.numel() ? x.data_as<C>() : nullptr;
  std::vector<double> sum_w(static_cast<size_t>(c)), sum_b(static_cast<size_t>(c));
  parallel_for(0, c, std::max<int64_t>(1, norm_grain / std::max<int64_t>(1, n * hw)), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const auto mu = static_cast<double>(m.data()[k]);
      const double invstd = train ? static_cast<double>(v.data()[k]) : 1 / std::sqrt(static_cast<double>(v.data()[k]) + eps);
      double total = 0;
      double dot = 0;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = (i * c + k) * hw; j < (i * c + k + 1) * hw; ++j) {
          total += static_cast<double>(gp[j]);
          dot += static_cast<double>(gp[j]) * (static_cast<double>(xp[j]) - mu);
        }
      sum_w[static_cast<size_t>(k)] = dot * invstd;
      sum_b[static_cast<size_t>(k)] = total;
      if (!dx.wanted()) continue;
      const double scale = invstd * static_cast<double>(w.data() ? w.data()[k] : C{1});
      const double slope = dot * invstd * invstd / count;
      const double level = total / count;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = (i * c + k) * hw; j < (i * c + k + 1) * hw; ++j) {
          const auto grad_at = static_cast<double>(gp[j]);
          dx.data()[j] =
              static_cast<C>((train ? grad_at - level - (static_cast<double>(xp[j]) - mu) * slope : grad_at) * scale);
        }
    }
  });
  dx.write();
  write_plain_sums(sum_w, dw);
  write_plain_sums(sum_b, db);
}

}  // namespace

void layer_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, int64_t n, const TensorBase& mean,
                                 const TensorBase& rstd, const TensorBase& weight, const TensorBase& grad_input,
                                 const TensorBase& grad_weight, const TensorBase& grad_bias) {
  if (input.dtype() == DType::float64)
    layer_norm_plainly<double>(grad, input, n, mean, rstd, weight, grad_input, grad_weight, grad_bias);
  else
    layer_norm_plainly<float>(grad, input, n, mean, rstd, weight, grad_input, grad_weight, grad_bias);
}

void group_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& mean,
                                 const TensorBase& rstd, const TensorBase& weight, int64_t n, int64_t c, int64_t hw,
                                 int64_t groups, const TensorBase& grad_input, const TensorBase& grad_weight,
                                 const TensorBase& grad_bias) {
  if (input.dtype() == DType::float64)
    group_norm_plainly<double>(grad, input, mean, rstd, weight, n, c, hw, groups, grad_input, grad_weight, grad_bias);
  else
    group_norm_plainly<float>(grad, input, mean, rstd, weight, n, c, hw, groups, grad_input, grad_weight, grad_bias);
}

void batch_norm_backward_plainly(const TensorBase& grad, const TensorBase& input, const TensorBase& weight,
                                 const TensorBase& running_mean, const TensorBase& running_var, const TensorBase& save_mean,
                                 const TensorBase& save_invstd, bool train, double eps, const TensorBase& grad_input,
                                 const TensorBase& grad_weight, const TensorBase& grad_bias) {
  if (input.dtype() == DType::float64)
    batch_norm_plainly<double>(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
                               grad_input, grad_weight, grad_bias);
  else
    batch_norm_plainly<float>(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, grad_input,
                              grad_weight, grad_bias);
}

}  // namespace calque::kernel
