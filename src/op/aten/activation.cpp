// Activations of torch.nn.functional, and clamping by numbers.
#include "kernel/cpu/elementwise/activation.h"

#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/activation_backward.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/elementwise/ternary.h"
#include "kernel/cpu/elementwise/unary.h"
#include "op/gradient/formulas.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Activation;
using kernel::Unary;

template <Unary fn>
void plain(const Tensor& self, const Tensor& out) {
  kernel::unary(fn, self.dtype(), self, out);
}

template <rule::OpName op>
Meta number_rule(const Tensor& self, const Scalar&) {
  return rule::unary(op.text, self);
}

constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

void refuse_complex(const char* op, const Tensor& self) {
  if (is_complex(self.dtype()))
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op) + ": not supported for complex types, found dtype " + std::string(name(self.dtype())));
}

Meta relu_rule(const Tensor& self) {
  if (self.dtype() == DType::bool_) throw UserError("relu: Boolean inputs not supported for relu");
  refuse_complex("relu", self);
  return rule::unary("relu", self);
}

// ---- clamping by numbers --------------------------------------------------------------------------------------------
using OptScalar = std::optional<Scalar>;

Meta clamp_rule(const Tensor& self, OptScalar min, OptScalar max) {
  if (!min && !max) throw UserError("clamp: at least one of 'min' or 'max' must not be None");
  refuse_complex("clamp", self);
  TypePromotion type;
  type.add(self);
  if (min) type.add(*min);
  if (max) type.add(*max);
  const DType d = type.result();
  if (is_complex(d)) throw UserError("clamp: not supported for complex limits");
  return rule::pointwise("clamp", d, {&self});
}

bool is_nan(const OptScalar& s) { return s && s->is_floating() && std::isnan(s->to_double()); }

void clamp_kernel(const Tensor& self, OptScalar min, OptScalar max, const Tensor& out) {
  const DType d = clamp_rule(self, min, max).dtype;
  if (is_nan(min) || is_nan(max)) return kernel::fill(out, Scalar(std::numeric_limits<double>::quiet_NaN()));
  if (min && max) return kernel::activation(Activation::clamp, d, self, {*min, *max}, true, out);
  if (min) return kernel::activation(Activation::clamp_min, d, self, {*min}, true, out);
  kernel::activation(Activation::clamp_max, d, self, {*max}, true, out);
}

// ---- activations with parameters ------------------------------------------------------------------------------------
Meta hardtanh_rule(const Tensor& self, const Scalar& min, const Scalar& max) {
  if (self.dtype() == DType::bool_) throw UserError("hardtanh: Bool inputs not supported for hardtanh");
  refuse_complex("hardtanh", self);
  if (is_integral(self.dtype()) && !is_signed(self.dtype()) && (min.to_int() < 0 || max.to_int() < 0))
    throw UserError("hardtanh: cannot do hardtanh on an unsigned type with negative limits, found min_val " + min.str() +
                    " and max_val " + max.str());
  return rule::like("hardtanh", self, {}, {}, {}, {}, {});
}
void hardtanh_kernel(const Tensor& self, const Scalar& min, const Scalar& max, const Tensor& out) {
  const DType d = self.dtype();
  const bool whole = is_integral(d);
  if (!whole && (std::isnan(min.to_double()) || std::isnan(max.to_double())))
    return kernel::fill(out, Scalar(std::numeric_limits<double>::quiet_NaN()));
  kernel::activation(Activation::clamp, d, self, {whole ? Scalar(min.to_int()) : min, whole ? Scalar(max.to_int()) : max},
                     true, out);
}

void elu_kernel(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, const Tensor& out) {
  const double negative =
      self.dtype() == DType::float64
          ? alpha.to_double() * scale.to_double()
          : static_cast<double>(static_cast<float>(alpha.to_double()) * static_cast<float>(scale.to_double()));
  kernel::activation(Activation::elu, self.dtype(), self, {Scalar(negative), scale, input_scale}, false, out);
}

Meta celu_rule(const Tensor& self, const Scalar& alpha) {
  if (!alpha.is_symbolic() && alpha.to_double() == 0) throw UserError("celu: ZeroDivisionError: alpha cannot be 0 for CELU");
  return rule::unary("celu", self);
}
void celu_kernel(const Tensor& self, const Scalar& alpha, const Tensor& out) {
  elu_kernel(self, alpha, Scalar(1.0), Scalar(1.0 / alpha.to_double()), out);
}

Meta softshrink_rule(const Tensor& self, const Scalar& lambd) {
  if (!(lambd.to_double() >= 0))
    throw UserError("softshrink: lambda must be greater or equal to 0, but found to be " + lambd.str());
  return rule::unary("softshrink", self);
}

bool is_tanh_form(std::string_view approximate) {
  if (approximate == "none") return false;
  if (approximate == "tanh") return true;
  throw UserError("gelu: approximate argument must be either none or tanh, found '" + std::string(approximate) + "'");
}

// ---- gated and two-output activations -------------------------------------------------------------------------------
std::array<Tensor, 2> halves(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) throw UserError("glu: does not support 0-dimensional tensors");
  const auto d = static_cast<size_t>(wrap_dim(dim, self.dim(), "glu"));
  const SymIntList sizes = self.sym_sizes();
  if (!check(sizes[d] % 2 == 0))
    throw UserError("glu: Halving dimension must be even, but dimension " + std::to_string(d) + " is size " +
                    sizes[d].str());
  SymInts half(sizes.begin(), sizes.end());
  half[d] = floor_div(sizes[d], 2);
  const SymIntList strides = self.sym_strides();
  const SymInts same(strides.begin(), strides.end());
  const SymInt offset = self.sym_storage_offset();
  return {make_view(self, half, same, offset), make_view(self, half, same, offset + half[d] * strides[d])};
}
Meta glu_rule(const Tensor& self, int64_t dim) {
  const auto [a, b] = halves(self, dim);
  return rule::pointwise("glu", self.dtype(), {&a, &b});
}
void glu_kernel(const Tensor& self, int64_t dim, const Tensor& out) {
  const auto [a, b] = halves(self, dim);
  kernel::glu(a, b, out);
}

Meta contiguous_like(const Tensor& self) {
  Meta m = self.meta();
  m.strides = contiguous_strides(m.sizes);
  return m;
}

Meta prelu_kernel_rule(const Tensor& self, const Tensor& weight) {
  if (self.dtype() != weight.dtype())
    throw UserError("prelu: type promoting not supported, expected weight of dtype " + std::string(name(self.dtype())) +
                    ", found " + std::string(name(weight.dtype())));
  Meta m = rule::binary("prelu", self, weight);
  if (rule::equal_sizes(m.sizes, self.sym_sizes()))
    m.strides = rule::preserved_strides(self);  // ATen starts from empty_like(self)
  return m;
}
Tensor prelu_body(const Tensor& self, const Tensor& weight) {
  if (self.dtype() != weight.dtype())
    throw UserError("prelu: type promoting not supported, expected weight of dtype " + std::string(name(self.dtype())) +
                    ", found " + std::string(name(weight.dtype())));
  if (weight.dim() > 1)
    throw UserError("prelu: weight: expected to be a scalar or 1-D tensor, found " + std::to_string(weight.dim()) +
                    " dimensions");
  const SymInt count = weight.sym_numel();
  if (guard(count != 1)) {
    if (self.dim() == 0) throw UserError("prelu: not allow zero-dim input tensor when weight has more than one element");
    const SymInt channels = self.dim() > 1 ? self.sym_size(1) : SymInt(1);
    if (!check(channels == count))
      throw UserError("prelu: mismatch of parameter numbers and input channel size, found parameter numbers = " +
                      count.str() + " and channel size = " + channels.str());
  }
  if (self.dim() == 1 && weight.dim() == 1) return _prelu_kernel(self, weight);
  SymInts shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) shape[1] = count;
  return _prelu_kernel(self, weight.dim() == 0 && self.dim() == 0
                                 ? weight
                                 : call("aten::view", {weight, Argument<SymIntList>::box(shape)}).to_tensor());
}

// ATen resizes output where it must, and makes buffer contiguous in any case.
std::tuple<Tensor, Tensor> log_sigmoid_forward_out(const Tensor& self, const Tensor& output, const Tensor& buffer) {
  const auto [out, rest] = log_sigmoid_forward(self);
  for (const Tensor* t : {&output, &buffer})
    if (t->dtype() != self.dtype())
      throw UserError("log_sigmoid_forward: expected output and buffer of dtype " + std::string(name(self.dtype())) +
                      ", found " + std::string(name(t->dtype())));
  if (!rule::equal_sizes(output.sym_sizes(), self.sym_sizes())) output.resize_(self.sym_sizes());
  buffer.resize_(self.sym_sizes(), MemoryFormat::contiguous);
  return {output.copy_(out), buffer.copy_(rest)};
}

// ---- gradients ------------------------------------------------------------------------------------------------------
Tensor clamp_gradient(const Gradients& g) {
  const Tensor self = g["self"];
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  const bool has_min = !g.argument("min").is_none(), has_max = !g.argument("max").is_none();
  if (!has_max) return where(self.ge(g.scalar("min")), g.grad(), zero);
  if (!has_min) return where(self.le(g.scalar("max")), g.grad(), zero);
  const Tensor above = self.ge(g.scalar("min"));
  return where(above.logical_and_(self.le(g.scalar("max"))), g.grad(), zero);
}

Tensor within_limit(const Gradients& g, bool is_min) {
  const Tensor zero = gradient::number_like(Scalar(0.0), g.grad());
  return where(is_min ? g["self"].ge(g.scalar("min")) : g["self"].le(g.scalar("max")), g.grad(), zero);
}

// Those that are to be differentiated again are written out.
Tensor silu_gradient(const Gradients& g) {
  const Tensor self = g["self"];
  if (!grad_enabled()) return silu_backward(g.grad(), self);
  const Tensor sigmoid = self.sigmoid();
  const Tensor slope = gradient::plus(self.mul(gradient::number_minus(Scalar(1.0), sigmoid)), Scalar(1.0));
  return g.grad().mul(sigmoid).mul(slope);
}
Tensor mish_gradient(const Gradients& g) {
  const Tensor self = g["self"];
  if (!grad_enabled()) return mish_backward(g.grad(), self);
  const Tensor sigmoid = self.sigmoid(), tanh = self.exp().log1p().tanh();
  const Tensor slope = tanh.add(self.mul(sigmoid).mul(gradient::number_minus(Scalar(1.0), tanh.mul(tanh))));
  return g.grad().mul(slope);
}

}  // namespace

void register_activation(Library& aten);
void register_activation(Library& aten) {
  aten.def("relu(Tensor self) -> Tensor")
      .compute(relu_rule, plain<Unary::relu>)
      .in_place("relu_", PythonAlias{"torch.nn.functional.relu_", "torch.relu_"})
      .out("relu.out")
      .tags(Tag::dense_out, Tag::pointwise, Tag::core)
      .gradient("self", "result", [](const Gradients& g) { return threshold_backward(g.grad(), g["result"], Scalar(0)); });
  aten.def("relu6(Tensor self) -> Tensor").python("torch.nn.functional.relu6").composite([](const Tensor& self) {
    return hardtanh(self, Scalar(0), Scalar(6));
  });
  aten.def("relu6_(Tensor(a!) self) -> Tensor(a!)").python("torch._C._nn.relu6_").composite([](const Tensor& self) {
    return hardtanh_(self, Scalar(0), Scalar(6));
  });
  aten.def("silu(Tensor self) -> Tensor")
      .python("torch.nn.functional.silu")
      .compute(rule::Named<"silu">::unary, plain<Unary::silu>)
      .in_place("silu_")
      .out("silu.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", silu_gradient);
  aten.def("mish(Tensor self) -> Tensor")
      .python("torch.nn.functional.mish")
      .compute(rule::Named<"mish">::unary, plain<Unary::mish>)
      .in_place("mish_")
      .out("mish.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", mish_gradient);
  aten.def("hardswish(Tensor self) -> Tensor")
      .python("torch.nn.functional.hardswish")
      .compute(rule::Named<"hardswish">::unary, plain<Unary::hardswish>)
      .in_place("hardswish_")
      .out("hardswish.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return hardswish_backward(g.grad(), g["self"]); });
  aten.def("hardsigmoid(Tensor self) -> Tensor")
      .python("torch.nn.functional.hardsigmoid")
      .compute(rule::Named<"hardsigmoid">::unary, plain<Unary::hardsigmoid>)
      .in_place("hardsigmoid_")
      .out("hardsigmoid.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return hardsigmoid_backward(g.grad(), g["self"]); });
  aten.def("gelu(Tensor self, *, str approximate='none') -> Tensor")
      .python("torch.nn.functional.gelu", "torch._C._nn.gelu")
      .compute([](const Tensor& self,
                  std::string_view approximate) { return is_tanh_form(approximate), rule::unary("gelu", self); },
               [](const Tensor& self, std::string_view approximate, const Tensor& out) {
                 kernel::unary(is_tanh_form(approximate) ? Unary::gelu_tanh : Unary::gelu, self.dtype(), self, out);
               })
      .in_place("gelu_", Tag::decomposes)
      .out("gelu.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        return gelu_backward(g.grad(), g["self"], g.argument("approximate").to_string());
      });
  aten.def("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
      .python("torch.nn.functional.hardtanh")
      .compute(hardtanh_rule, hardtanh_kernel)
      .in_place("hardtanh_", PythonAlias{"torch.nn.functional.hardtanh_", "torch._C._nn.hardtanh_"}, Tag::decomposes)
      .out("hardtanh.out")
      .tags(Tag::made_like_self, Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        return hardtanh_backward(g.grad(), g["self"], g.scalar("min_val"), g.scalar("max_val"));
      });
  aten.def("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
      .python("torch.nn.functional.leaky_relu")
      .compute(number_rule<"leaky_relu">,
               [](const Tensor& self, const Scalar& slope, const Tensor& out) {
                 kernel::activation(Activation::leaky_relu, self.dtype(), self, {slope}, false, out);
               })
      .in_place("leaky_relu_", PythonAlias{"torch.nn.functional.leaky_relu_", "torch._C._nn.leaky_relu_"}, Tag::decomposes)
      .out("leaky_relu.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        return leaky_relu_backward(g.grad(), g["self"], g.scalar("negative_slope"), false);
      });
  aten.def("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
      .python("torch.nn.functional.elu")
      .compute([](const Tensor& self, const Scalar&, const Scalar&, const Scalar&) { return rule::unary("elu", self); },
               elu_kernel)
      .in_place("elu_", PythonAlias{"torch.nn.functional.elu_", "torch._C._nn.elu_"}, Tag::decomposes)
      .out("elu.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "self", [](const Gradients& g) {
        return elu_backward(g.grad(), g.scalar("alpha"), g.scalar("scale"), g.scalar("input_scale"), false, g["self"]);
      });
  aten.def("celu(Tensor self, Scalar alpha=1.) -> Tensor")
      .compute(celu_rule, celu_kernel)
      .in_place("celu_", PythonAlias{"torch.nn.functional.celu_", "torch.celu_"})
      .out("celu.out")
      .tags(Tag::dense_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) {
        return elu_backward(g.grad(), g.scalar("alpha"), Scalar(1),
                            Scalar(1.0 / static_cast<double>(static_cast<float>(g.scalar("alpha").to_double()))), false,
                            g["self"]);
      });
  aten.def("selu(Tensor self) -> Tensor").composite([](const Tensor& self) {
    return elu(self, Scalar(selu_alpha), Scalar(selu_scale));
  });
  aten.def("selu_(Tensor(a!) self) -> Tensor(a!)")
      .python_alias("torch.nn.functional.selu_", "torch.selu_")
      .composite([](const Tensor& self) { return elu_(self, Scalar(selu_alpha), Scalar(selu_scale)); });
  aten.def("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
      .python("torch.nn.functional.softplus", "torch._C._nn.softplus")
      .compute([](const Tensor& self, const Scalar&, const Scalar&) { return rule::unary("softplus", self); },
               [](const Tensor& self, const Scalar& beta, const Scalar& threshold, const Tensor& out) {
                 kernel::activation(Activation::softplus, self.dtype(), self, {beta, threshold}, false, out);
               })
      .out("softplus.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) {
        return softplus_backward(g.grad(), g["self"], g.scalar("beta"), g.scalar("threshold"));
      });
  aten.def("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .tags(Tag::always_apart)
      .python("torch.nn.functional.softshrink", "torch._C._nn.softshrink")
      .compute(softshrink_rule,
               [](const Tensor& self, const Scalar& lambd, const Tensor& out) {
                 kernel::activation(Activation::softshrink, self.dtype(), self, {lambd}, false, out);
               })
      .out("softshrink.out")
      .tags(Tag::pointwise)
      .gradient("self", "self",
                [](const Gradients& g) { return softshrink_backward(g.grad(), g["self"], g.scalar("lambd")); });
  aten.def("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .tags(Tag::always_apart)
      .python_alias("torch.nn.functional.hardshrink", "torch.hardshrink")
      .compute(number_rule<"hardshrink">,
               [](const Tensor& self, const Scalar& lambd, const Tensor& out) {
                 kernel::activation(Activation::hardshrink, self.dtype(), self, {lambd}, true, out);
               })
      .out("hardshrink.out")
      .tags(Tag::pointwise)
      .gradient("self", "self",
                [](const Gradients& g) { return hardshrink_backward(g.grad(), g["self"], g.scalar("lambd")); });
  aten.def("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
      .compute([](const Tensor& self, const Scalar&, const Scalar&) { return rule::unary("threshold", self); },
               [](const Tensor& self, const Scalar& threshold, const Scalar& value, const Tensor& out) {
                 kernel::activation(Activation::threshold, self.dtype(), self, {threshold, value}, true, out);
               })
      .in_place("threshold_", PythonAlias{"torch.nn.functional.threshold_", "torch.threshold_"})
      .out("threshold.out")
      .tags(Tag::overlap_ok, Tag::cast_out, Tag::pointwise)
      .gradient("self", "self",
                [](const Gradients& g) { return threshold_backward(g.grad(), g["self"], g.scalar("threshold")); });
  aten.def("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
      .compute(clamp_rule, clamp_kernel)
      .in_place("clamp_")
      .out("clamp.out")
      .tags(Tag::pointwise, Tag::core)
      .gradient("self", "self", clamp_gradient);
  aten.def("clamp_min(Tensor self, Scalar min) -> Tensor")
      .compute([](const Tensor& self, const Scalar& min) { return clamp_rule(self, min, std::nullopt); },
               [](const Tensor& self, const Scalar& min, const Tensor& out) { clamp_kernel(self, min, std::nullopt, out); })
      .in_place("clamp_min_", Tag::left_whole)
      .out("clamp_min.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return within_limit(g, true); });
  aten.def("clamp_max(Tensor self, Scalar max) -> Tensor")
      .compute([](const Tensor& self, const Scalar& max) { return clamp_rule(self, std::nullopt, max); },
               [](const Tensor& self, const Scalar& max, const Tensor& out) { clamp_kernel(self, std::nullopt, max, out); })
      .in_place("clamp_max_", Tag::left_whole)
      .out("clamp_max.out")
      .tags(Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return within_limit(g, false); });
  aten.def("glu(Tensor self, int dim=-1) -> Tensor")
      .python("torch.nn.functional.glu")
      .compute(glu_rule, glu_kernel)
      .out("glu.out")
      .tags(Tag::cast_out, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) { return glu_backward(g.grad(), g["self"], g.integer("dim")); });
  aten.def("log_sigmoid(Tensor self) -> Tensor")
      .python_alias("torch.nn.functional.logsigmoid", "torch._C._nn.log_sigmoid")
      .python("torch._C._nn.log_sigmoid")
      .composite([](const Tensor& self) { return std::get<0>(log_sigmoid_forward(self)); })
      .out("log_sigmoid.out");
  aten.def("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")
      .compute(
          [](const Tensor& self) {
            return std::array<Meta, 2>{contiguous_like(self), contiguous_like(self)};
          },
          kernel::log_sigmoid_forward)
      .gradient("self", "self result1",
                [](const Gradients& g) { return log_sigmoid_backward(g.grad(), g["self"], g["result1"]); })
      .no_gradient("result1");
  aten.def("log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!))")
      .composite(log_sigmoid_forward_out);
  aten.def("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
      .compute(prelu_kernel_rule, kernel::prelu)
      .tags(Tag::pointwise)
      .gradient("self weight", "self weight", [](const Gradients& g) {
        const auto [x, w] = _prelu_kernel_backward(g.grad(), g["self"], g["weight"]);
        return TensorVector{x, w};
      });
  aten.def("prelu(Tensor self, Tensor weight) -> Tensor")
      .python_alias("torch.nn.functional.prelu", "torch.prelu")
      .tags(Tag::autocast_lower)
      .composite(prelu_body);
}

}  // namespace calque
