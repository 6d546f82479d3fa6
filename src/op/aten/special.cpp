// Special functions: digamma and polygamma, inverse error functions, Bessel functions.
#include "kernel/cpu/elementwise/special.h"

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/special.h"
#include "calque/op/aten/where.h"
#include "op/gradient/formulas.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Special;

template <Special fn>
void special_in_float(const Tensor& self, const Tensor& out) {
  kernel::special(fn, float_type(self.dtype()), self, out);
}

Meta polygamma_rule(int64_t n, const Tensor& self) {
  if (n < 0) throw UserError("polygamma: polygamma(n, x) does not support negative n, found " + std::to_string(n));
  return rule::unary_float("polygamma", self);
}
void polygamma_kernel(int64_t n, const Tensor& self, const Tensor& out) {
  kernel::polygamma(n, float_type(self.dtype()), self, out);
}

// PyTorch sums over a fresh dimension, hence the contiguous result.
Meta mvlgamma_rule(const Tensor& self, int64_t p) {
  if (self.dtype() == DType::bool_) throw UserError("mvlgamma: The input tensor may not be a boolean tensor.");
  if (p < 1) throw UserError("mvlgamma: p has to be greater than or equal to 1, found " + std::to_string(p));
  // Defined for self > (p - 1) / 2 alone, and as much work as p is large.
  constexpr int64_t most = 10000;
  if (p > most) throw UserError("mvlgamma: p has to be at most " + std::to_string(most) + ", found " + std::to_string(p));
  Meta m = self.meta();
  m.dtype = float_type(m.dtype);
  m.strides = contiguous_strides(m.sizes);
  return m;
}

// ---- gradients ------------------------------------------------------------------------------------------------------
constexpr double root_of_two_pi = 2.5066282746310005024;

Tensor i0e_gradient(const Gradients& g) {
  const Tensor part = g["self"].sgn().mul(g["result"]);
  return g.grad().mul(special_i1e(g["self"]).sub(part));
}

// Of the modified Bessel function of order one, or of that scaled by exp(-|x|): at zero it is a half.
Tensor i1_gradient(const Gradients& g, bool scaled) {
  const Tensor self = g["self"];
  const DType d = self.dtype();
  const double eps = d == DType::float64 ? 0x1p-52 : d == DType::float16 ? 0x1p-10 : d == DType::bfloat16 ? 0x1p-7 : 0x1p-23;
  const Tensor is_large = self.abs().gt(Scalar(eps));
  const Tensor x = where(is_large, self, gradient::number_like(Scalar(eps), self));
  const Tensor inverse = x.reciprocal();
  const Tensor part = g["result"].mul(scaled ? x.sgn().add(inverse) : inverse);
  const Tensor slope = (scaled ? special_i0e(x) : i0(x)).sub(part);
  return g.grad().mul(where(is_large, slope, gradient::number_like(Scalar(0.5), self)));
}

Tensor mvlgamma_gradient(const Gradients& g) {
  const Tensor self = g["self"];
  const double half = 0.5 * static_cast<double>(g.integer("p"));
  const Tensor steps = arange(Scalar(-half + 0.5), Scalar(0.5), Scalar(0.5), self.dtype(), Layout::strided, self.device());
  return g.grad().mul(steps.add(self.unsqueeze(-1)).digamma_().sum({-1}));
}

}  // namespace

void register_special(Library& aten);
void register_special(Library& aten) {
  aten.def("digamma(Tensor self) -> Tensor")
      .compute(rule::Named<"digamma">::unary_float, special_in_float<Special::digamma>)
      .in_place("digamma_")
      .out("digamma.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(polygamma(1, g["self"])); });
  aten.def("erfinv(Tensor self) -> Tensor")
      .compute(rule::Named<"erfinv">::unary_float, special_in_float<Special::erfinv>)
      .in_place("erfinv_")
      .out("erfinv.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) {
        return gradient::times(g["self"].erfinv().pow(Scalar(2)).exp(), Scalar(0.88622692545275801365)).mul(g.grad());
      });
  aten.def("i0(Tensor self) -> Tensor")
      .compute(rule::Named<"i0">::unary_float, special_in_float<Special::i0>)
      .in_place("i0_")
      .out("i0.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(special_i1(g["self"])); });
  aten.def("special_i0e(Tensor self) -> Tensor")
      .compute(rule::Named<"special_i0e">::unary_float, special_in_float<Special::special_i0e>)
      .out("special_i0e.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", i0e_gradient);
  aten.def("special_i1(Tensor self) -> Tensor")
      .compute(rule::Named<"special_i1">::unary_float, special_in_float<Special::special_i1>)
      .out("special_i1.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", [](const Gradients& g) { return i1_gradient(g, false); });
  aten.def("special_i1e(Tensor self) -> Tensor")
      .compute(rule::Named<"special_i1e">::unary_float, special_in_float<Special::special_i1e>)
      .out("special_i1e.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", [](const Gradients& g) { return i1_gradient(g, true); });
  aten.def("special_ndtri(Tensor self) -> Tensor")
      .compute(rule::Named<"special_ndtri">::unary_float, special_in_float<Special::special_ndtri>)
      .out("special_ndtri.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "result", [](const Gradients& g) {
        const Tensor bell = gradient::over(g["result"].square(), Scalar(2)).exp();
        return gradient::times(g.grad(), Scalar(root_of_two_pi)).mul(bell);
      });
  aten.def("special_log_ndtr(Tensor self) -> Tensor")
      .compute(rule::Named<"special_log_ndtr">::unary_float, special_in_float<Special::special_log_ndtr>)
      .out("special_log_ndtr.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", [](const Gradients& g) {
        const Tensor bell = g["result"].add(gradient::over(g["self"].pow(Scalar(2)), Scalar(2))).neg().exp();
        return gradient::over(g.grad(), Scalar(root_of_two_pi)).mul(bell);
      });
  aten.def("special_erfcx(Tensor self) -> Tensor")
      .compute(rule::Named<"special_erfcx">::unary_float, special_in_float<Special::special_erfcx>)
      .out("special_erfcx.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self result", [](const Gradients& g) {
        return gradient::minus(gradient::times(g["self"], Scalar(2.0)).mul(g["result"]), Scalar(1.1283791670955126))
            .mul(g.grad());
      });
  aten.def("polygamma(int n, Tensor self) -> Tensor")
      .compute(polygamma_rule, polygamma_kernel)
      .out("polygamma.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", [](const Gradients& g) { return g.grad().mul(polygamma(g.integer("n") + 1, g["self"])); });
  aten.def("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)").composite([](const Tensor& self, int64_t n) {
    return polygamma(n, self, Out(self));
  });
  aten.def("mvlgamma(Tensor self, int p) -> Tensor")
      .compute(mvlgamma_rule, [](const Tensor& self, int64_t p,
                                 const Tensor& out) { kernel::mvlgamma(p, float_type(self.dtype()), self, out); })
      .in_place("mvlgamma_")
      .out("mvlgamma.out")
      .tags(Tag::cast_out, Tag::pointwise)
      .gradient("self", "self", mvlgamma_gradient);
}

}  // namespace calque
