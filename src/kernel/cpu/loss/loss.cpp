#include "kernel/cpu/loss/loss.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

struct Parameters {
  double value;
  double scale;
  bool* out_of_range;
  DType dtype = DType::float32;  // of the result
};

// PyTorch's huber_loss of 16-bit values rounds each step.
template <class C>
C rounded(C x, DType dtype) {
  if (dtype == DType::bfloat16) return static_cast<C>(static_cast<float>(BFloat16(static_cast<float>(x))));
  if (dtype == DType::float16) return static_cast<C>(static_cast<float>(Half(static_cast<float>(x))));
  return x;
}
template <class C>
C huber(C a, C b, C delta, DType d) {
  const C z = std::abs(rounded(a - b, d));
  delta = rounded(delta, d);
  if (z < delta) return rounded(C(0.5) * z, d) * z;
  return delta * rounded(z - rounded(C(0.5) * delta, d), d);
}

template <class C>
const C* input(void* const* arrays, int k) {
  return static_cast<const C*>(arrays[k]);
}

// log1p(exp(-|x|)) + max(-x, 0), i.e. -log(sigmoid(x)).
template <class C>
C softplus_of_minus(C x) {
  return std::log1p(std::exp(-std::abs(x))) + std::max(-x, C{0});
}

template <Loss fn, class C>
void forward_loop(void* const* arrays, int64_t n, const void* parameters) {
  const auto& p = *static_cast<const Parameters*>(parameters);
  C* out = static_cast<C*>(arrays[0]);
  const C* x = input<C>(arrays, 1);
  const C* t = input<C>(arrays, 2);
  const auto value = static_cast<C>(p.value);
  bool bad = false;
  for (int64_t i = 0; i < n; ++i) {
    const C d = x[i] - t[i];
    const C z = std::abs(d);
    if constexpr (fn == Loss::mse)
      out[i] = d * d;
    else if constexpr (fn == Loss::smooth_l1)
      out[i] = z < value ? C(0.5) * z * z / value : z - C(0.5) * value;
    else if constexpr (fn == Loss::huber)
      out[i] = huber(x[i], t[i], value, p.dtype);
    else if constexpr (fn == Loss::soft_margin)
      out[i] = std::log1p(std::exp(-t[i] * x[i]));
    else if constexpr (fn == Loss::bce_logits)
      out[i] = (1 - t[i]) * x[i] + softplus_of_minus(x[i]);
    else {
      bad = bad || !(x[i] >= 0 && x[i] <= 1 && t[i] >= 0 && t[i] <= 1);
      out[i] = (t[i] - 1) * std::max(std::log1p(-x[i]), C{-100}) - t[i] * std::max(std::log(x[i]), C{-100});
    }
  }
  if (bad && p.out_of_range) std::atomic_ref(*p.out_of_range).store(true, std::memory_order_relaxed);
}

template <Loss fn, class C>
void backward_loop(void* const* arrays, int64_t n, const void* parameters) {
  const auto& p = *static_cast<const Parameters*>(parameters);
  C* out = static_cast<C*>(arrays[0]);
  const C* g = input<C>(arrays, 1);
  const C* x = input<C>(arrays, 2);
  const C* t = input<C>(arrays, 3);
  const auto value = static_cast<C>(p.value);
  const auto scale = static_cast<C>(p.scale);
  for (int64_t i = 0; i < n; ++i) {
    const C d = x[i] - t[i];
    const C sign = d > 0 ? C{1} : d < 0 ? C{-1} : d;
    if constexpr (fn == Loss::mse)
      out[i] = 2 * scale * d * g[i];
    else if constexpr (fn == Loss::smooth_l1)
      out[i] = std::abs(d) < value ? scale * d * g[i] / value : scale * sign * g[i];
    else if constexpr (fn == Loss::huber)
      out[i] = std::abs(d) <= value ? scale * d * g[i] : scale * value * sign * g[i];
    else if constexpr (fn == Loss::bce)
      out[i] = scale * g[i] * d / std::max((1 - x[i]) * x[i], static_cast<C>(1e-12F));
    else if constexpr (fn == Loss::bce_logits)
      out[i] = scale * g[i] * (1 / (1 + std::exp(-x[i])) - t[i]);
    else {
      const C e = std::exp(-t[i] * x[i]);
      out[i] = -scale * t[i] * e / (1 + e) * g[i];
    }
  }
}

template <class C>
ElementFn choose(Loss fn, bool backward) {
  switch (fn) {
    case Loss::mse: return backward ? &backward_loop<Loss::mse, C> : &forward_loop<Loss::mse, C>;
    case Loss::smooth_l1: return backward ? &backward_loop<Loss::smooth_l1, C> : &forward_loop<Loss::smooth_l1, C>;
    case Loss::huber: return backward ? &backward_loop<Loss::huber, C> : &forward_loop<Loss::huber, C>;
    case Loss::bce: return backward ? &backward_loop<Loss::bce, C> : &forward_loop<Loss::bce, C>;
    case Loss::bce_logits: return backward ? &backward_loop<Loss::bce_logits, C> : &forward_loop<Loss::bce_logits, C>;
    case Loss::soft_margin: return backward ? &backward_loop<Loss::soft_margin, C> : &forward_loop<Loss::soft_margin, C>;
  }
  return nullptr;
}

const char* kernel_name(Loss fn) {
  switch (fn) {
    case Loss::mse: return "mse_cpu";
    case Loss::smooth_l1: return "smooth_l1_cpu";
    case Loss::huber: return "huber_cpu";
    case Loss::bce: return "binary_cross_entropy";
    case Loss::bce_logits: return "log_sigmoid_cpu";
    case Loss::soft_margin: return "soft_margin_loss";
  }
  return "";
}

ElementFn find(Loss fn, DType d, bool backward) {
  if (!is_floating(d) || is_float8(d)) not_implemented(kernel_name(fn), d);
  return d == DType::float64 ? choose<double>(fn, backward) : choose<float>(fn, backward);
}

template <class C, bool has_positive>
void bce_logits_loop(void* const* arrays, int64_t n, const void*) {
  C* out = static_cast<C*>(arrays[0]);
  const C* x = input<C>(arrays, 1);
  const C* t = input<C>(arrays, 2);
  const C* w = input<C>(arrays, 3);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (has_positive) {
      const C* pos = input<C>(arrays, 4);
      out[i] = ((1 - t[i]) * x[i] + ((pos[i] - 1) * t[i] + 1) * softplus_of_minus(x[i])) * w[i];
    } else {
      out[i] = ((1 - t[i]) * x[i] + softplus_of_minus(x[i])) * w[i];
    }
  }
}

}  // namespace

void elementwise_loss(Loss fn, const TensorBase& self, const TensorBase& target, double parameter, const TensorBase& out) {
  bool out_of_range = false;
  const Parameters p{parameter, 1, &out_of_range, out.dtype()};
  ElementLoop loop(out.dtype());
  loop.output(out).input(self).input(target).run(find(fn, out.dtype(), false), &p, ElementLoop::expensive);
  if (out_of_range) throw UserError("binary_cross_entropy: all elements of input and target should be between 0 and 1");
}

void elementwise_loss_backward(Loss fn, const TensorBase& grad, const TensorBase& self, const TensorBase& target,
                               double parameter, double scale, const TensorBase& out) {
  const Parameters p{parameter, scale, nullptr, out.dtype()};
  ElementLoop loop(out.dtype());
  loop.output(out).input(grad).input(self).input(target).run(find(fn, out.dtype(), true), &p, ElementLoop::expensive);
}

void bce_logits(const TensorBase& self, const TensorBase& target, const TensorBase& weight, const TensorBase& pos_weight,
                const TensorBase& out) {
  find(Loss::bce_logits, self.dtype(), false);
  const bool is_double = out.dtype() == DType::float64;
  ElementLoop loop(out.dtype());
  loop.output(out).input(self).input(target);
  if (weight.defined())
    loop.input(weight);
  else
    loop.input(Scalar(1.0));
  if (pos_weight.defined()) {
    loop.input(pos_weight);
    loop.run(is_double ? &bce_logits_loop<double, true> : &bce_logits_loop<float, true>, nullptr, ElementLoop::expensive);
  } else {
    loop.run(is_double ? &bce_logits_loop<double, false> : &bce_logits_loop<float, false>, nullptr, ElementLoop::expensive);
  }
}

// ---- negative log likelihood --------------------------------------------------------------------------------------
namespace {

int64_t class_at(const TensorBase& target, int64_t i) {
  return target.dtype() == DType::uint8 ? static_cast<int64_t>(target.data_as<uint8_t>()[i]) : target.data_as<int64_t>()[i];
}
double number_at(const TensorBase& t, int64_t i) {
  double x = 0;
  load_fn(t.dtype(), Compute::f64)(static_cast<const char*>(t.data()) + i * t.element_size(), t.element_size(), &x, 1);
  return x;
}
void put_loss(const TensorBase& t, int64_t i, double x) {
  store_fn(Compute::f64, t.dtype())(&x, static_cast<char*>(t.mutable_data()) + i * t.element_size(), t.element_size(), 1);
}
void check_class(int64_t c, int64_t classes) {
  if (c < 0 || c >= classes)
    throw UserError("nll_loss: Target " + std::to_string(c) + " is out of bounds: expected a class between 0 and " +
                    std::to_string(classes - 1));
}

}  // namespace

void nll_loss(const TensorBase& self, const TensorBase& target, const TensorBase& weight, NllShape s, int64_t reduction,
              int64_t ignore_index, const TensorBase& output, const TensorBase& total_weight) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) not_implemented("nll_loss_out_frame", self.dtype());
  double total = 0;
  double weights = 0;
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t j = 0; j < s.spatial; ++j) {
      const int64_t at = i * s.spatial + j;
      const int64_t c = class_at(target, at);
      if (c == ignore_index) {
        if (reduction == 0) put_loss(output, at, 0);
        continue;
      }
      check_class(c, s.classes);
      const double w = weight.defined() ? number_at(weight, c) : 1;
      const double loss = -number_at(self, (i * s.classes + c) * s.spatial + j) * w;
      if (reduction == 0) put_loss(output, at, loss);
      total += loss;
      weights += w;
    }
  if (reduction == 1)
    put_loss(output, 0, total / weights);
  else if (reduction != 0)
    put_loss(output, 0, total);
  put_loss(total_weight, 0, reduction == 0 ? 0 : weights);
}

void nll_loss_backward(const TensorBase& grad, const TensorBase& target, const TensorBase& weight, NllShape s,
                       int64_t reduction, int64_t ignore_index, const TensorBase& total_weight,
                       const TensorBase& grad_input) {
  const auto bytes = static_cast<size_t>(grad_input.numel() * grad_input.element_size());
  if (bytes) std::fill_n(static_cast<char*>(grad_input.mutable_data()), bytes, char{0});
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t j = 0; j < s.spatial; ++j) {
      const int64_t at = i * s.spatial + j;
      const int64_t c = class_at(target, at);
      if (c == ignore_index) continue;
      check_class(c, s.classes);
      const double w = weight.defined() ? number_at(weight, c) : 1;
      double g = number_at(grad, reduction == 0 ? at : 0);
      if (reduction == 1) g /= number_at(total_weight, 0);
      put_loss(grad_input, (i * s.classes + c) * s.spatial + j, -w * g);
    }
}

}  // namespace calque::kernel
