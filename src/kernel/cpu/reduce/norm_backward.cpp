// Gradients of normalisation. GradientRows lie contiguous; sums that grow long are kept in double.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/move.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/reduce/norm.h"
#include "kernel/cpu/reduce/norm_backward_plain.h"
#include "kernel/cpu/reduce/norm_backward_table.h"
#include "kernel/cpu/reduce/norm_support.h"
#include "kernel/cpu/require.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(NormBackwardRow, norm_backward_table)

namespace {

// A result that is computed contiguous and written where it belongs afterwards.
class Target {
 public:
  Target(const TensorBase& out, DType dtype) : out_(out) {
    if (!out.defined()) return;
    direct_ = out.dtype() == dtype && out.is_contiguous();
    work_ = direct_ ? out : make_tensor(out.sizes(), dtype);
  }
  ~Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  bool wanted() const { return out_.defined(); }
  const TensorBase& work() const { return work_; }
  void write() const {
    if (out_.defined() && !direct_) copy(work_, out_);
  }

 private:
  const TensorBase& out_;
  TensorBase work_;
  bool direct_ = true;
};

template <class C>
void write_sums(const std::vector<double>& sums, const TensorBase& out) {
  if (!out.defined()) return;
  const Target target(out, dtype_v<C>);
  C* const to = target.work().template mutable_data_as<C>();
  for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<C>(sums[i]);
  target.write();
}

// Gradient, input and the input's gradient, contiguous, by element.
class GradientRows {
 public:
  GradientRows(const TensorBase& grad, const TensorBase& input, const Target& to)
      : grad_(contiguous_as(grad, input.dtype())),
        input_(contiguous_as(input, input.dtype())),
        item_(input.element_size()),
        g_(grad_.numel() ? static_cast<const char*>(grad_.data()) : nullptr),
        x_(grad_.numel() ? static_cast<const char*>(input_.data()) : nullptr),
        to_(to.wanted() && grad_.numel() ? static_cast<char*>(to.work().mutable_data()) : nullptr) {}
  const void* grad(int64_t i) const { return g_ + i * item_; }
  const void* input(int64_t i) const { return x_ + i * item_; }
  void* to(int64_t i) const { return to_ + i * item_; }
  bool empty() const { return g_ == nullptr; }

 private:
  TensorBase grad_, input_;
  int64_t item_;
  const char *g_, *x_;
  char* to_;
};

// In float64 the terms cancel as PyTorch's do, which takes x as it is; in float32 less is lost with x around the mean.
template <class C>
double center_of(double mean) {
  return std::is_same_v<C, double> ? 0 : mean;
}

// Where float32 overflows, or something infinite came in, the vectors' loops have other NaN than PyTorch's.
bool all_finite(const std::vector<double>& sums) {
  return std::all_of(sums.begin(), sums.end(), [](double x) { return std::fabs(x) < 1e37; });
}
bool all_finite(const Target& target) {
  if (!target.wanted() || target.work().numel() == 0) return true;
  const TensorBase& t = target.work();
  const uint64_t exponent = t.dtype() == DType::float64    ? 0x7ff0000000000000U
                            : t.dtype() == DType::float32  ? 0x7f800000U
                            : t.dtype() == DType::bfloat16 ? 0x7f80U
                                                           : 0x7c00U;
  return !any_all_ones(t.data(), 1, t.numel(), t.numel(), static_cast<size_t>(t.element_size()), exponent);
}

int64_t grain_of(int64_t elements) { return std::max<int64_t>(1, norm_grain / std::max<int64_t>(1, elements)); }

// The sums of each column of [rows, n]: of grad * (x - mean) * rstd and of grad. Threads own columns.
template <class C>
void add_columns(const NormBackwardRow& loops, const GradientRows& data, int64_t rows, int64_t n, const C* mean,
                 const C* rstd, std::vector<double>& with_x, std::vector<double>& alone) {
  constexpr int64_t tile = 256, together = 64;  // rows that are added in the compute type before they go to double
  parallel_for(0, (n + tile - 1) / tile, grain_of(rows * tile), [&](int64_t first, int64_t last) {
    C some_x[tile], some[tile];
    for (int64_t begin = first * tile; begin < std::min(n, last * tile); begin += tile) {
      const int64_t width = std::min(tile, n - begin);
      for (int64_t i = 0; i < rows;) {
        std::fill_n(some_x, width, C{0});
        std::fill_n(some, width, C{0});
        for (const int64_t end = std::min(rows, i + together); i < end; ++i)
          loops.columns(data.grad(i * n + begin), data.input(i * n + begin), width, static_cast<double>(mean[i]),
                        static_cast<double>(rstd[i]), some_x, some);
        for (int64_t k = 0; k < width; ++k) {
          with_x[static_cast<size_t>(begin + k)] += static_cast<double>(some_x[k]);
          alone[static_cast<size_t>(begin + k)] += static_cast<double>(some[k]);
        }
      }
    }
  });
}

template <class C>
bool layer_norm_backward_as(const NormBackwardRow& loops, const TensorBase& grad, const TensorBase& input, int64_t n,
                            const TensorBase& mean, const TensorBase& rstd, const TensorBase& weight,
                            const TensorBase& grad_input, const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const ParameterArray<C> w(weight), m(mean), r(rstd);
  const Target to(grad_input, input.dtype());
  const GradientRows data(grad, input, to);
  const int64_t rows = n ? input.numel() / n : 0;
  if (to.wanted() && rows)
    parallel_for(0, rows, grain_of(n), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const auto a = static_cast<double>(r.data()[i]), mu = static_cast<double>(m.data()[i]);
        const double center = center_of<C>(mu);
        double with_x = 0, alone = 0;
        loops.sums(data.grad(i * n), data.input(i * n), w.data(), n, center, with_x, alone);
        const double slope = (alone * (mu - center) - with_x) * a * a * a / static_cast<double>(n);
        const double rest = -slope * (mu - center) - alone * a / static_cast<double>(n);
        loops.gradient(data.grad(i * n), data.input(i * n), w.data(), n, a, center, slope, rest, data.to(i * n));
      }
    });
  if (!all_finite(to)) return false;
  to.write();
  if (!grad_weight.defined() && !grad_bias.defined()) return true;
  std::vector<double> sum_w(static_cast<size_t>(n)), sum_b(static_cast<size_t>(n));
  if (rows) add_columns(loops, data, rows, n, m.data(), r.data(), sum_w, sum_b);
  if (!all_finite(sum_w) || !all_finite(sum_b)) return false;
  write_sums<C>(sum_w, grad_weight);
  write_sums<C>(sum_b, grad_bias);
  return true;
}

template <class C>
bool group_norm_backward_as(const NormBackwardRow& loops, const TensorBase& grad, const TensorBase& input,
                            const TensorBase& mean, const TensorBase& rstd, const TensorBase& weight, int64_t n, int64_t c,
                            int64_t hw, int64_t groups, const TensorBase& grad_input, const TensorBase& grad_weight,
                            const TensorBase& grad_bias) {
  const ParameterArray<C> w(weight), m(mean), r(rstd);
  const Target to(grad_input, input.dtype());
  const GradientRows data(grad, input, to);
  const int64_t per_group = c / groups;
  const auto planes = static_cast<size_t>(n * c);
  const auto scale_of = [&](int64_t plane) { return static_cast<double>(w.data() ? w.data()[plane % c] : C{1}); };
  const auto center_at = [&](int64_t group) { return center_of<C>(static_cast<double>(m.data()[group])); };
  // Sums of grad * x and of grad over each plane.
  std::vector<double> with_x(planes), alone(planes);
  if (!data.empty())
    parallel_for(0, n * c, grain_of(hw), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        loops.sums(data.grad(i * hw), data.input(i * hw), nullptr, hw, center_at(i / per_group),
                   with_x[static_cast<size_t>(i)], alone[static_cast<size_t>(i)]);
    });
  if (to.wanted() && !data.empty())
    parallel_for(0, n * groups, grain_of(per_group * hw), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        double p = 0, q = 0;
        for (int64_t k = i * per_group; k < (i + 1) * per_group; ++k) {
          p += with_x[static_cast<size_t>(k)] * scale_of(k);
          q += alone[static_cast<size_t>(k)] * scale_of(k);
        }
        const auto a = static_cast<double>(r.data()[i]);
        const double center = center_at(i), mu = static_cast<double>(m.data()[i]) - center;
        const auto count = static_cast<double>(per_group * hw);
        const double slope = (q * mu - p) * a * a * a / count;
        const double rest = -slope * mu - q * a / count;
        for (int64_t k = i * per_group; k < (i + 1) * per_group; ++k)
          loops.gradient(data.grad(k * hw), data.input(k * hw), nullptr, hw, a * scale_of(k), center, slope, rest,
                         data.to(k * hw));
      }
    });
  if (!all_finite(to)) return false;
  to.write();
  std::vector<double> sum_w(static_cast<size_t>(c)), sum_b(static_cast<size_t>(c));
  for (int64_t i = 0; i < n * c; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto channel = static_cast<size_t>(i % c);
    const int64_t group = i / per_group;
    const double mu = static_cast<double>(m.data()[group]) - center_at(group);
    sum_w[channel] += (with_x[at] - alone[at] * mu) * static_cast<double>(r.data()[group]);
    sum_b[channel] += alone[at];
  }
  if (!all_finite(sum_w) || !all_finite(sum_b)) return false;
  write_sums<C>(sum_w, grad_weight);
  write_sums<C>(sum_b, grad_bias);
  return true;
}

template <class C>
bool batch_norm_backward_as(const NormBackwardRow& loops, const TensorBase& grad, const TensorBase& input,
                            const TensorBase& weight, const TensorBase& running_mean, const TensorBase& running_var,
                            const TensorBase& save_mean, const TensorBase& save_invstd, bool train, double eps,
                            const TensorBase& grad_input, const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const ParameterArray<C> w(weight), m(train ? save_mean : running_mean), v(train ? save_invstd : running_var);
  const Target to(grad_input, input.dtype());
  const GradientRows data(grad, input, to);
  const NormRow& straight = norm_row(input.dtype(), "batch_norm_backward");
  const int64_t n = input.size(0), c = input.size(1), hw = n * c != 0 ? input.numel() / (n * c) : 0;
  const auto count = static_cast<double>(n * hw);
  std::vector<double> sum_w(static_cast<size_t>(c)), sum_b(static_cast<size_t>(c));
  if (!data.empty())
    parallel_for(0, c, grain_of(n * hw), [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        const auto mu = static_cast<double>(m.data()[k]);
        const auto var = static_cast<double>(v.data()[k]);
        const double invstd = train ? var : 1 / std::sqrt(var + eps);
        double total = 0, dot = 0;
        for (int64_t i = 0; i < n; ++i) {
          double with_x = 0, alone = 0;
          loops.sums(data.grad((i * c + k) * hw), data.input((i * c + k) * hw), nullptr, hw, mu, with_x, alone);
          dot += with_x;
          total += alone;
        }
        sum_w[static_cast<size_t>(k)] = dot * invstd;
        sum_b[static_cast<size_t>(k)] = total;
        if (!to.wanted()) continue;
        const double scale = invstd * static_cast<double>(w.data() ? w.data()[k] : C{1});
        const double slope = -dot * invstd * invstd / count * scale, rest = -total / count * scale;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = (i * c + k) * hw;
          if (train)
            loops.gradient(data.grad(at), data.input(at), nullptr, hw, scale, mu, slope, rest, data.to(at));
          else
            straight.affine(data.grad(at), hw, 0, scale, 0, data.to(at));
        }
      }
    });
  if (!all_finite(to)) return false;
  to.write();
  if (!all_finite(sum_w) || !all_finite(sum_b)) return false;
  write_sums<C>(sum_w, grad_weight);
  write_sums<C>(sum_b, grad_bias);
  return true;
}

const NormBackwardRow& backward_row(DType dtype, const char* what) { return float_row(norm_backward_table(), dtype, what); }

}  // namespace

void layer_norm_backward(const TensorBase& grad, const TensorBase& input, int64_t n, const TensorBase& mean,
                         const TensorBase& rstd, const TensorBase& weight, const TensorBase& grad_input,
                         const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const NormBackwardRow& loops = backward_row(input.dtype(), "LayerNormBackwardKernelImpl");
  const bool done =
      input.dtype() == DType::float64
          ? layer_norm_backward_as<double>(loops, grad, input, n, mean, rstd, weight, grad_input, grad_weight, grad_bias)
          : layer_norm_backward_as<float>(loops, grad, input, n, mean, rstd, weight, grad_input, grad_weight, grad_bias);
  if (!done) layer_norm_backward_plainly(grad, input, n, mean, rstd, weight, grad_input, grad_weight, grad_bias);
}

void group_norm_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& mean, const TensorBase& rstd,
                         const TensorBase& weight, int64_t n, int64_t c, int64_t hw, int64_t groups,
                         const TensorBase& grad_input, const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const NormBackwardRow& loops = backward_row(input.dtype(), "GroupNormBackwardKernelImpl");
  const bool done = input.dtype() == DType::float64
                        ? group_norm_backward_as<double>(loops, grad, input, mean, rstd, weight, n, c, hw, groups,
                                                         grad_input, grad_weight, grad_bias)
                        : group_norm_backward_as<float>(loops, grad, input, mean, rstd, weight, n, c, hw, groups, grad_input,
                                                        grad_weight, grad_bias);
  if (!done)
    group_norm_backward_plainly(grad, input, mean, rstd, weight, n, c, hw, groups, grad_input, grad_weight, grad_bias);
}

void batch_norm_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& weight,
                         const TensorBase& running_mean, const TensorBase& running_var, const TensorBase& save_mean,
                         const TensorBase& save_invstd, bool train, double eps, const TensorBase& grad_input,
                         const TensorBase& grad_weight, const TensorBase& grad_bias) {
  const char* op = "batch_norm_backward";
  const NormBackwardRow& loops = backward_row(input.dtype(), op);
  const std::vector<int64_t> channels{input.size(1)};
  require_sizes(op, "grad_out", grad, input.sizes());
  require_sizes_if(op, "weight", weight, channels);
  require_sizes(op, train ? "save_mean" : "running_mean", train ? save_mean : running_mean, channels);
  require_sizes(op, train ? "save_invstd" : "running_var", train ? save_invstd : running_var, channels);
  const bool done = input.dtype() == DType::float64
                        ? batch_norm_backward_as<double>(loops, grad, input, weight, running_mean, running_var, save_mean,
                                                         save_invstd, train, eps, grad_input, grad_weight, grad_bias)
                        : batch_norm_backward_as<float>(loops, grad, input, weight, running_mean, running_var, save_mean,
                                                        save_invstd, train, eps, grad_input, grad_weight, grad_bias);
  if (!done)
    batch_norm_backward_plainly(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
                                grad_input, grad_weight, grad_bias);
}

}  // namespace calque::kernel
