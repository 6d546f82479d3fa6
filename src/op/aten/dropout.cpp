// Dropout and the randomized leaky relu.
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/aten/activation_backward.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/composite_policy.h"
#include "calque/tensor/generator.h"
#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/elementwise/ternary.h"
#include "kernel/cpu/elementwise/unary.h"
#include "kernel/cpu/random/random.h"
#include "kernel/cpu/random/random_fill.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

void check_probability(const char* op, double p) {
  if (!(p >= 0 && p <= 1))
    throw UserError(std::string(op) + ": dropout probability has to be between 0 and 1, but got " + Scalar(p).str());
}

// One value per channel: sizes [N, C, 1, 1, ...].
Tensor feature_noise(const Tensor& input) {
  if (input.dim() < 2)
    throw UserError("feature_dropout: requires at least 2 dimensions in the input, found " + std::to_string(input.dim()));
  SymInts sizes(static_cast<size_t>(input.dim()), 1);
  sizes[0] = input.sym_size(0);
  sizes[1] = input.sym_size(1);
  return new_empty(input, sizes);
}

template <bool in_place>
Tensor multiply(const Tensor& input, const Tensor& noise) {
  return in_place ? mul_(input, noise) : mul(input, noise);
}

template <bool feature, bool alpha, bool in_place>
Tensor dropout_body(const Tensor& input, double p, bool train) {
  check_probability(feature ? alpha ? "feature_alpha_dropout" : "feature_dropout" : alpha ? "alpha_dropout" : "dropout", p);
  // With symbolic sizes, and in exports, as PyTorch's traces have it: without asking whether there are elements.
  if constexpr (!feature && !alpha && !in_place)
    if (input.is_symbolic() || python_bodies())
      return p == 0 || !train ? input.clone() : std::get<0>(native_dropout(input, p, train));
  if (p == 0 || !train || guard(input.sym_numel() == 0)) return input;
  if (p == 1) return multiply<in_place>(input, zeros({}, input.dtype(), input.layout(), input.device(), std::nullopt));
  const Tensor noise = feature ? feature_noise(input) : empty_like(input);
  bernoulli_(noise, 1 - p);
  if (!alpha) {
    div_(noise, Scalar(1 - p));
    return multiply<in_place>(input, noise);
  }
  // Dropped units become SELU's negative limit; an affine map restores mean and variance.
  constexpr double limit = 1.7580993408473766;
  const double a = 1 / std::sqrt((limit * limit * p + 1) * (1 - p));
  const Tensor b = add(noise, Scalar(-1), Scalar(1));
  mul_(b, Scalar(limit * a));
  add_(b, Scalar(limit * a * p), Scalar(1));
  mul_(noise, Scalar(a));
  return add_(multiply<in_place>(input, noise), b, Scalar(1));
}

// Of nothing PyTorch returns the input itself and a mask of the input's dtype.
using Two = std::tuple<Tensor, Tensor>;
template <bool fake>
Two make_results(const Tensor& input) {
  const bool nothing = guard_or(input.sym_numel() == 0, false);
  const Tensor mask = make_tensor(rule::like("native_dropout", input, nothing ? input.dtype() : DType::bool_, std::nullopt,
                                             std::nullopt, std::nullopt, MemoryFormat::preserve),
                                  fake);
  if (nothing) return {input, mask};
  return {make_tensor(rule::like("native_dropout", input, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                 MemoryFormat::preserve),
                      fake),
          mask};
}
Two native_dropout_rule(const Tensor& input, double, std::optional<bool>) { return make_results<true>(input); }
void native_dropout_into(const Tensor& input, double p, std::optional<bool> train, const Tensor& out, const Tensor& mask) {
  if (!train.value_or(true)) {
    kernel::fill(mask, Scalar(true));
    return kernel::copy(input, out);
  }
  if (!is_floating(input.dtype()))
    throw UserError("native_dropout: result type " + std::string(name(default_dtype())) +
                    " can't be cast to the desired output type " + std::string(name(input.dtype())));
  const double kept = 1 - p;
  bernoulli_kernel(mask, kept, nullptr);
  kernel::scale_masked(input, mask, kept == 0 ? 0 : 1 / kept, out);
}
Two native_dropout_kernel(const Tensor& input, double p, std::optional<bool> train) {
  const Two results = make_results<false>(input);
  if (input.numel()) native_dropout_into(input, p, train, std::get<0>(results), std::get<1>(results));
  return results;
}
Two native_dropout_out(const Tensor& input, double p, std::optional<bool> train, const Tensor& out, const Tensor& mask) {
  const auto [result, result_mask] = native_dropout(input, p, train);
  const Operator& op = get_operator("aten::native_dropout.out");
  for (const auto& [from, to] : {std::pair{result, out}, std::pair{result_mask, mask}}) {
    if (from.dtype() != to.dtype())
      throw UserError(op.name() + ": expected out= of dtype " + std::string(name(from.dtype())) + ", found " +
                      std::string(name(to.dtype())));
    Meta dense = from.meta();
    dense.strides = contiguous_strides(dense.sizes);
    op_detail::prepare_out(op, dense, to);
    to.copy_(from, false);
  }
  return {out, mask};
}

// ---- rrelu ----------------------------------------------------------------------------------------------------------
// Checked where values are written: PyTorch's shape rule has no guard for it.
void check_noise(const Tensor& self, const Tensor& noise) {
  if (!rule::equal_sizes(self.sym_sizes(), noise.sym_sizes()))
    throw UserError("rrelu_with_noise: noise must have self's sizes " + str(self.sym_sizes()) + ", found " +
                    str(noise.sym_sizes()));
}
// Slopes are drawn in training alone, and only for values.
void check_bounds(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training) {
  if (training && !guard_or(self.sym_numel() == 0, false) &&
      !(lower.to_double() <= upper.to_double() && std::isfinite(upper.to_double() - lower.to_double())))
    throw UserError("rrelu_with_noise: lower bound should be less than or equal to the upper bound, found " + lower.str() +
                    " and " + upper.str());
}

Tensor contiguous_result(const Tensor& self, bool fake) {
  Meta m = self.meta();
  m.strides = contiguous_strides(m.sizes);
  return make_tensor(m, fake);
}

// In training each element that is not positive gets a slope drawn from [lower, upper), which `noise` keeps; otherwise
// all get the middle of the range.
void rrelu_into(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                Generator* generator, const Tensor& out) {
  check_noise(self, noise);
  check_bounds(self, lower, upper, training);
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) kernel::not_implemented("rrelu_with_noise", self.dtype());
  const double from = lower.to_double();
  const double to = upper.to_double();
  if (training && self.dtype() == DType::float16) kernel::not_implemented("rrelu_with_noise_out_cpu", self.dtype());
  if (!training)
    return kernel::activation(kernel::Activation::leaky_relu, self.dtype(), self, {Scalar((from + to) / 2)}, false, out);
  const Tensor input = self.is_contiguous() ? self : clone(self, MemoryFormat::contiguous);
  const Tensor result = contiguous_result(self, false);
  const Tensor slopes = contiguous_result(noise, false);
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(self.dtype(), "rrelu_with_noise", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const T* x = input.data_as<T>();
    T* y = result.mutable_data_as<T>();
    T* r = slopes.mutable_data_as<T>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      if (static_cast<C>(x[i]) <= 0) {
        r[i] = from_double<T>(draw_unit<double>(g) * (to - from) + from);
        y[i] = from_double<T>(static_cast<C>(x[i]) * static_cast<C>(r[i]));
      } else {
        r[i] = from_double<T>(1);
        y[i] = x[i];
      }
    }
  });
  kernel::copy(slopes, noise);
  kernel::copy(result, out);
  noise.storage()->bump_version();
}

Tensor rrelu_with_noise_rule(const Tensor& self, const Tensor&, const Scalar& lower, const Scalar& upper, bool training,
                             Generator*) {
  check_bounds(self, lower, upper, training);
  return contiguous_result(self, true);
}
Tensor rrelu_with_noise_kernel(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                               bool training, Generator* generator) {
  const Tensor out = contiguous_result(self, false);
  rrelu_into(self, noise, lower, upper, training, generator, out);
  return out;
}
std::tuple<Tensor, Tensor> rrelu_functional_rule(const Tensor& self, const Tensor& noise, const Scalar& lower,
                                                 const Scalar& upper, bool training, Generator* generator) {
  return {rrelu_with_noise_rule(self, noise, lower, upper, training, generator), empty_like(noise)};
}
std::tuple<Tensor, Tensor> rrelu_functional_kernel(const Tensor& self, const Tensor& noise, const Scalar& lower,
                                                   const Scalar& upper, bool training, Generator* generator) {
  const Tensor own = clone(noise);
  return {rrelu_with_noise_kernel(self, own, lower, upper, training, generator), own};
}
void rrelu_in_place_rule(const Tensor& self, const Tensor&, const Scalar& lower, const Scalar& upper, bool training,
                         Generator*) {
  check_bounds(self, lower, upper, training);
}
void rrelu_in_place_kernel(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                           Generator* generator) {
  rrelu_into(self, noise, lower, upper, training, generator, self);
}
Tensor slopes_for(const Tensor& self, const Scalar& lower, const Scalar& upper) {
  if (!std::isfinite(lower.to_double()) || !std::isfinite(upper.to_double()) || lower.to_double() > upper.to_double())
    throw UserError("rrelu: expected finite bounds, the lower one at most the upper one, found " + lower.str() + " and " +
                    upper.str());
  return empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous);
}

Tensor native_dropout_gradient(const Gradients& g) {
  const Value& train = g.argument("train");
  const double p = g.number("p");
  const bool drops = !train.is_none() && train.to_bool();
  const double scale = !drops ? 1 : p == 1 ? 0 : 1 / (1 - p);
  if (!grad_enabled()) return native_dropout_backward(g.grad(), g["result1"], scale);
  return g.grad().mul(gradient::times(g["result1"].type_as(g.grad()), Scalar(scale)));
}

}  // namespace

void register_dropout(Library& aten);
void register_dropout(Library& aten) {
  aten.def("dropout(Tensor input, float p, bool train) -> Tensor")
      .tags(Tag::not_whole)
      .python("torch.nn.functional.dropout")
      .composite(dropout_body<false, false, false>);
  aten.def("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)").composite(dropout_body<false, false, true>);
  aten.def("alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .tags(Tag::not_whole)
      .python("torch.nn.functional.alpha_dropout")
      .composite(dropout_body<false, true, false>);
  aten.def("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)").composite(dropout_body<false, true, true>);
  aten.def("feature_dropout(Tensor input, float p, bool train) -> Tensor")
      .tags(Tag::not_whole)
      .composite(dropout_body<true, false, false>);
  aten.def("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
      .composite(dropout_body<true, false, true>);
  aten.def("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .tags(Tag::not_whole)
      .python("torch.nn.functional.feature_alpha_dropout")
      .composite(dropout_body<true, true, false>);
  aten.def("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
      .composite(dropout_body<true, true, true>);
  aten.def("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
      .own(native_dropout_rule, native_dropout_kernel)
      .tags(Tag::random, Tag::core)
      .gradient("input", "result1", native_dropout_gradient)
      .no_gradient("result1");
  aten.def(
          "native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), "
          "Tensor(b!))")
      .composite(native_dropout_out)
      .tags(Tag::out, Tag::random);
  aten.def(
          "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
          "training=False, Generator? generator=None) -> Tensor")
      .python("torch._C._nn.rrelu_with_noise")
      .own(rrelu_with_noise_rule, rrelu_with_noise_kernel)
      .tags(Tag::random)
      .gradient("self", "self noise", [](const Gradients& g) {
        return rrelu_with_noise_backward(g.grad(), g["self"], g["noise"], g.scalar("lower"), g.scalar("upper"),
                                         g.flag("training"), false);
      });
  aten.def(
          "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
          "training=False, Generator? generator=None) -> Tensor(a!)")
      .mutate(rrelu_in_place_rule, rrelu_in_place_kernel)
      .tags(Tag::random)
      .gradient("self", "noise result", [](const Gradients& g) {
        return rrelu_with_noise_backward(g.grad(), g["result"], g["noise"], g.scalar("lower"), g.scalar("upper"),
                                         g.flag("training"), true);
      });
  aten.def(
          "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
          "bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)")
      .own(rrelu_functional_rule, rrelu_functional_kernel)
      .tags(Tag::random)
      .gradient("self", "self noise", [](const Gradients& g) {
        return rrelu_with_noise_backward(g.grad(), g["self"], g["noise"], g.scalar("lower"), g.scalar("upper"),
                                         g.flag("training"), false);
      });
  aten.def(
          "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
          "generator=None) -> Tensor")
      .composite([](const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, Generator* generator) {
        return rrelu_with_noise(self, slopes_for(self, lower, upper), lower, upper, training, generator);
      });
  aten.def(
          "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
          "generator=None) -> Tensor(a!)")
      .python_alias("torch.nn.functional.rrelu_", "torch.rrelu_")
      .composite([](const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, Generator* generator) {
        return rrelu_with_noise_(self, slopes_for(self, lower, upper), lower, upper, training, generator);
      });
}

}  // namespace calque
