// Activations that the core set does not have.

#include <cmath>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

Tensor relu6_of_three_more(const Tensor& self) { return clamp(clamp(self + 3, Scalar(0)), std::nullopt, Scalar(6)); }

bool is_integer(const Scalar& s, int64_t value) { return s.is_integral(false) && !s.is_symbolic() && s.to_int() == value; }

// Trailing arguments with their default values are not given to PyTorch's bodies; those take a scale of None then.
Tensor softplus_of(const Tensor& a, const Scalar& beta, const Scalar& threshold) {
  if (is_integer(beta, 1) && is_integer(threshold, 20)) {
    const Tensor rhs = log1p(exp(a));
    return where(a > threshold, a, rhs);
  }
  const Tensor scaled = a * beta;
  const Tensor rhs = log1p(exp(scaled)) / beta;
  return where(scaled > threshold, a, rhs);
}

}  // namespace

void decompose_activations(DecompositionBuilder& table) {
  table.add_cast("silu", [](const Tensor& self) -> Tensor { return self * sigmoid(self); });
  table.add_cast("hardsigmoid", [](const Tensor& self) -> Tensor { return relu6_of_three_more(self) / 6; });
  table.add_cast("hardswish", [](const Tensor& self) -> Tensor { return self * relu6_of_three_more(self) / 6; });
  table.add_promoted("mish", {0}, Kind::standard, [](const Tensor& a) -> Tensor { return a * tanh(softplus(a)); });
  table.add_promoted("celu", {0}, Kind::standard, [](const Tensor& a, const Scalar& alpha) -> Tensor {
    const bool is_default = alpha.is_floating() && !alpha.is_symbolic() && alpha.to_double() == 1;
    const Tensor rhs = is_default ? expm1(a) : expm1(a / alpha) * alpha;
    return where(a > Scalar(0), a, rhs);
  });
  table.add_promoted("softplus", {0}, Kind::standard,
                     [](const Tensor& a, const Scalar& beta, const Scalar& threshold) -> Tensor {
                       return softplus_of(a, beta, threshold);
                     });
  table.add_promoted("threshold", {0}, Kind::standard,
                     [](const Tensor& a, const Scalar& threshold, const Scalar& value) -> Tensor {
                       return where(a <= threshold, value, a);
                     });
  table.add_promoted("glu", {0}, Kind::standard, [](const Tensor& a, int64_t dim) -> Tensor {
    dim = wrap_dim(dim, a.dim(), "glu");
    require(a.sym_size(dim) % SymInt(2) == SymInt(0), "glu", "the dimension to halve must have an even size");
    const std::vector<Tensor> halves = tensor_split(a, SymInt(2), dim);
    return halves[0] * sigmoid(halves[1]);
  });
  table.add("hardshrink",
            [](const Tensor& a, const Scalar& lambd) -> Tensor { return where(abs(a) <= lambd, Scalar(0), a); });
  table.add("softshrink", [](const Tensor& a, const Scalar& lambd) -> Tensor {
    const Tensor beyond = abs(a) > lambd;
    const Tensor shrunk = a - sign(a) * lambd;
    return where(beyond, shrunk, a * 0);
  });
  table.add("_prelu_kernel", [](const Tensor& self, const Tensor& weight) -> Tensor {
    const Tensor positive = self > Scalar(0);
    return where(positive, self, weight * self);
  });
  table.add_cast("log_sigmoid_forward", [](const Tensor& self) -> std::tuple<Tensor, Tensor> {
    const Tensor least = minimum(new_zeros(self, SymIntList{}, std::nullopt, std::nullopt, std::nullopt, false), self);
    const Tensor z = exp(-abs(self));
    return {least - log1p(z), z};
  });
}

}  // namespace calque
