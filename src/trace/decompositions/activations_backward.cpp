// Gradients of activations and of losses of two distributions.
#include <limits>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

Tensor gelu_slope(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  if (approximate == "tanh") {
    const double beta = 0.7978845608028654, kappa = 0.044715;
    const Tensor square = self * self;
    const Tensor inner = (self + square * self * kappa) * beta;
    const Tensor tanh_inner = tanh(inner);
    const Tensor left = self * 0.5;
    const Tensor of_left = (tanh_inner + 1) * 0.5;
    const Tensor of_tanh = 1 - tanh_inner * tanh_inner;
    const Tensor of_inner = (square * (3 * kappa) + 1) * beta;
    return grad * (of_left + left * of_tanh * of_inner);
  }
  const Tensor below = (erf(self * 0.7071067811865476) + 1) * 0.5;
  const Tensor bell = exp(self * self * -0.5) * 0.3989422804014327;
  return grad * (below + self * bell);
}

Tensor elu_slope(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, bool is_result,
                 const Tensor& x) {
  const Scalar negative = times(alpha, scale);
  const Tensor below = x <= Scalar(0);
  const Tensor scaled = grad * input_scale;
  const Tensor slope = is_result ? scaled * (x + negative) : scaled * negative * exp(x * input_scale);
  return where(below, slope, grad * scale);
}

Tensor logit_slope(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const Tensor above = self >= Scalar(eps.value_or(0.0));
  const Tensor within = logical_and(above, self <= Scalar(eps ? 1.0 - *eps : 1.0));
  const Tensor slope = grad / (self * (1.0 - self));
  if (eps) return where(within, slope, Scalar(0.0));
  const Tensor nan = full(SymIntList{}, Scalar(std::numeric_limits<double>::quiet_NaN()), self.dtype(), Layout::strided,
                          self.device(), false);
  return where(within, slope, nan);
}

Tensor glu_slope(const Tensor& grad, const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim(), "glu_backward");
  const SymInt half = floor_div(self.sym_size(dim), 2);
  const Tensor value = self.narrow(dim, 0, half);
  const Tensor sigmoid_gate = sigmoid(self.narrow(dim, half, half));
  const Tensor of_gate = (1.0 - sigmoid_gate) * sigmoid_gate * value * grad;
  const Tensor of_value = sigmoid_gate * grad;
  return cat({of_value, of_gate}, dim);
}

Tensor log_sigmoid_slope(const Tensor& grad, const Tensor& self, const Tensor& buffer) {
  const Tensor below = self < Scalar(0);
  const Tensor zero = scalar_tensor(Scalar(0), DType::int64, Layout::strided, self.device());
  const Tensor most = where(below, scalar_tensor(Scalar(1), DType::int64, Layout::strided, self.device()), zero);
  const Tensor minus = scalar_tensor(Scalar(-1), DType::int64, Layout::strided, self.device());
  const Tensor sign = where(below, scalar_tensor(Scalar(1), DType::int64, Layout::strided, self.device()), minus);
  const Tensor share = buffer / (buffer + 1);
  return grad * (most - sign * share);
}

void decompose_gates(DecompositionBuilder& table) {
  table.add_cast("glu_backward", glu_slope);
  table.add("_prelu_kernel_backward",
            [](const Tensor& grad, const Tensor& self, const Tensor& weight) -> std::tuple<Tensor, Tensor> {
              const Tensor positive = self > Scalar(0);
              const Tensor of_self = where(positive, grad, weight * grad);
              const Tensor again = self > Scalar(0);
              const Tensor product = self * grad;
              return {of_self, where(again, Scalar(0.0), product)};
            });
  table.add("native_dropout_backward", [](const Tensor& grad, const Tensor& mask, double scale) -> Tensor {
    const Tensor factor = mask.to(grad.dtype(), Layout::strided, grad.device()) * scale;
    return clone(grad * factor, MemoryFormat::contiguous);
  });
  table.add_cast(
      "binary_cross_entropy_backward",
      [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) -> Tensor {
        const Tensor first = grad * (self - target);
        Tensor slope = first / clamp(self * (1 - self), Scalar(1e-12));
        if (weight.defined()) slope = slope * weight;
        return reduction == 1 ? slope / Scalar(self.sym_numel()) : slope;
      });
  table.add_cast("soft_margin_loss_backward",
                 [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
                   const Tensor share = target * grad;
                   const Tensor slope = share * (sigmoid(target * self) - 1);
                   return reduction == 1 ? slope / Scalar(self.sym_numel()) : slope;
                 });
}

}  // namespace

void decompose_activations_backward(DecompositionBuilder& table) {
  table.add_cast("tanh_backward", [](const Tensor& grad, const Tensor& out) -> Tensor { return grad * (1 - out * out); });
  table.add_cast("sigmoid_backward",
                 [](const Tensor& grad, const Tensor& out) -> Tensor { return grad * (out * (1 - out)); });
  table.add_cast("softplus_backward",
                 [](const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) -> Tensor {
                   const Tensor z = exp(self * beta);
                   const Tensor straight = self * beta > threshold;
                   const Tensor share = grad * z;
                   return where(straight, grad, share / (z + 1.0));
                 });
  table.add_cast("elu_backward", elu_slope);
  table.add_cast("hardsigmoid_backward", [](const Tensor& grad, const Tensor& self) -> Tensor {
    const Tensor above = self > Scalar(-3.0);
    const Tensor within = bitwise_and(above, self < Scalar(3.0));
    return where(within, grad * (1.0 / 6.0), Scalar(0.0));
  });
  table.add_cast("hardtanh_backward",
                 [](const Tensor& grad, const Tensor& self, const Scalar& min, const Scalar& max) -> Tensor {
                   const Tensor below = self <= min;
                   return where(bitwise_or(below, self >= max), Scalar(0.0), grad);
                 });
  table.add_cast("hardswish_backward", [](const Tensor& grad, const Tensor& self) -> Tensor {
    const Tensor below = self <= Scalar(-3);
    const Tensor within = self < Scalar(3);
    const Tensor middle = where(within, grad * (self / 3 + 0.5), grad);
    return where(below, Scalar(0.0), middle);
  });
  table.add("threshold_backward", [](const Tensor& grad, const Tensor& self, const Scalar& threshold) -> Tensor {
    return where(self <= threshold, Scalar(0), grad);
  });
  table.add_cast("leaky_relu_backward", [](const Tensor& grad, const Tensor& self, const Scalar& slope, bool) -> Tensor {
    const Tensor positive = self > Scalar(0);
    return where(positive, grad, grad * slope);
  });
  table.add_cast("gelu_backward", gelu_slope);
  table.add_cast("mish_backward", [](const Tensor& grad, const Tensor& self) -> Tensor {
    const Tensor tanh_softplus = tanh(softplus(self));
    const Tensor scaled = self * sigmoid(self);
    return grad * (tanh_softplus + scaled * (1 - tanh_softplus * tanh_softplus));
  });
  table.add_cast("silu_backward", [](const Tensor& grad, const Tensor& self) -> Tensor {
    const Tensor s = sigmoid(self);
    const Tensor share = grad * s;
    return share * (self * (1 - s) + 1);
  });
  table.add_cast("log_sigmoid_backward", log_sigmoid_slope);
  table.add("logit_backward", logit_slope);
  decompose_gates(table);
}

}  // namespace calque
