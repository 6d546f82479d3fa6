// Second names: operators that ATen defines as another operator.
#include "op/stanza.h"

namespace calque {

void register_alias(Library& aten);
void register_alias(Library& aten) {
  aten.def("absolute(Tensor self) -> Tensor").composite([](const Tensor& self) { return abs(self); });
  aten.def("absolute_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return abs_(self); });
  aten.def("absolute.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return abs(self, Out(out)); });
  aten.def("arccos(Tensor self) -> Tensor").composite([](const Tensor& self) { return acos(self); });
  aten.def("arccos_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return acos_(self); });
  aten.def("arccos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return acos(self, Out(out));
  });
  aten.def("arccosh(Tensor self) -> Tensor").composite([](const Tensor& self) { return acosh(self); });
  aten.def("arccosh_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return acosh_(self); });
  aten.def("arccosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return acosh(self, Out(out));
  });
  aten.def("arcsin(Tensor self) -> Tensor").composite([](const Tensor& self) { return asin(self); });
  aten.def("arcsin_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return asin_(self); });
  aten.def("arcsin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return asin(self, Out(out));
  });
  aten.def("arcsinh(Tensor self) -> Tensor").composite([](const Tensor& self) { return asinh(self); });
  aten.def("arcsinh_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return asinh_(self); });
  aten.def("arcsinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return asinh(self, Out(out));
  });
  aten.def("arctan(Tensor self) -> Tensor").composite([](const Tensor& self) { return atan(self); });
  aten.def("arctan_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return atan_(self); });
  aten.def("arctan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return atan(self, Out(out));
  });
  aten.def("arctanh(Tensor self) -> Tensor").composite([](const Tensor& self) { return atanh(self); });
  aten.def("arctanh_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return atanh_(self); });
  aten.def("arctanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return atanh(self, Out(out));
  });
  aten.def("fix(Tensor self) -> Tensor").composite([](const Tensor& self) { return trunc(self); });
  aten.def("fix_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return trunc_(self); });
  aten.def("fix.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return trunc(self, Out(out));
  });
  aten.def("negative(Tensor self) -> Tensor").composite([](const Tensor& self) { return neg(self); });
  aten.def("negative_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return neg_(self); });
  aten.def("negative.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return neg(self, Out(out)); });
  aten.def("special_digamma(Tensor self) -> Tensor").composite([](const Tensor& self) { return digamma(self); });
  aten.def("special_digamma.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return digamma(self, Out(out)); });
  aten.def("special_psi(Tensor self) -> Tensor").composite([](const Tensor& self) { return digamma(self); });
  aten.def("special_psi.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return digamma(self, Out(out)); });
  aten.def("special_erf(Tensor self) -> Tensor").composite([](const Tensor& self) { return erf(self); });
  aten.def("special_erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return erf(self, Out(out)); });
  aten.def("special_erfc(Tensor self) -> Tensor").composite([](const Tensor& self) { return erfc(self); });
  aten.def("special_erfc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return erfc(self, Out(out)); });
  aten.def("special_erfinv(Tensor self) -> Tensor").composite([](const Tensor& self) { return erfinv(self); });
  aten.def("special_erfinv.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return erfinv(self, Out(out)); });
  aten.def("special_exp2(Tensor self) -> Tensor").composite([](const Tensor& self) { return exp2(self); });
  aten.def("special_exp2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return exp2(self, Out(out)); });
  aten.def("special_expit(Tensor self) -> Tensor").composite([](const Tensor& self) { return sigmoid(self); });
  aten.def("special_expit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return sigmoid(self, Out(out)); });
  aten.def("special_expm1(Tensor self) -> Tensor").composite([](const Tensor& self) { return expm1(self); });
  aten.def("special_expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return expm1(self, Out(out)); });
  aten.def("special_gammaln(Tensor self) -> Tensor").composite([](const Tensor& self) { return lgamma(self); });
  aten.def("special_gammaln.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return lgamma(self, Out(out)); });
  aten.def("special_i0(Tensor self) -> Tensor").composite([](const Tensor& self) { return i0(self); });
  aten.def("special_i0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return i0(self, Out(out)); });
  aten.def("special_log1p(Tensor self) -> Tensor").composite([](const Tensor& self) { return log1p(self); });
  aten.def("special_log1p.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return log1p(self, Out(out)); });
  aten.def("special_sinc(Tensor self) -> Tensor").composite([](const Tensor& self) { return sinc(self); });
  aten.def("special_sinc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& out) { return sinc(self, Out(out)); });
  aten.def("special_logit(Tensor self, float? eps=None) -> Tensor")
      .composite([](const Tensor& self, std::optional<double> eps) { return logit(self, eps); });
  aten.def("special_logit.out(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)")
      .composite(
          [](const Tensor& self, std::optional<double> eps, const Tensor& out) { return logit(self, eps, Out(out)); });
  aten.def("special_round(Tensor self, *, int decimals=0) -> Tensor").composite([](const Tensor& self, int64_t decimals) {
    return round(self, decimals);
  });
  aten.def("special_round.out(Tensor self, *, int decimals=0, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, int64_t decimals, const Tensor& out) { return round(self, decimals, Out(out)); });
  aten.def("special_multigammaln(Tensor self, int p) -> Tensor").composite([](const Tensor& self, int64_t p) {
    return mvlgamma(self, p);
  });
  aten.def("special_multigammaln.out(Tensor self, int p, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, int64_t p, const Tensor& out) { return mvlgamma(self, p, Out(out)); });
  aten.def("special_polygamma(int n, Tensor self) -> Tensor").composite([](int64_t n, const Tensor& self) {
    return polygamma(n, self);
  });
  aten.def("special_polygamma.out(int n, Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](int64_t n, const Tensor& self, const Tensor& out) { return polygamma(n, self, Out(out)); });
  aten.def("special_ndtr(Tensor self) -> Tensor")
      .composite([](const Tensor& self) {
        return mul(add(erf(mul(self, Scalar(0.7071067811865476))), Scalar(1), Scalar(1)), Scalar(0.5));
      })
      .out("special_ndtr.out")
      .tags(Tag::cast_out);
  aten.def("square(Tensor self) -> Tensor").composite([](const Tensor& self) { return pow(self, Scalar(2)); });
  aten.def("square_(Tensor(a!) self) -> Tensor(a!)").composite([](const Tensor& self) { return pow_(self, Scalar(2)); });
  aten.def("square.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").composite([](const Tensor& self, const Tensor& out) {
    return pow(self, Scalar(2), Out(out));
  });
  aten.def("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
      .composite(
          [](const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) { return clamp(self, min, max); });
  aten.def("clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)")
      .composite(
          [](const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) { return clamp_(self, min, max); });
  aten.def("clip.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max, const Tensor& out) {
        return clamp(self, min, max, Out(out));
      });
  aten.def("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
      .cpp_name("clip_Tensor")
      .composite([](const Tensor& self, const Tensor& min, const Tensor& max) { return clamp_Tensor(self, min, max); });
  aten.def("clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)")
      .cpp_name("clip_Tensor_")
      .composite([](const Tensor& self, const Tensor& min, const Tensor& max) { return clamp_Tensor_(self, min, max); });
  aten.def("clip.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& min, const Tensor& max, const Tensor& out) {
        return clamp_Tensor(self, min, max, Out(out));
      });
}

}  // namespace calque
