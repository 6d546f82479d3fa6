// Second names: operators that ATen defines as another operator.
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/unary.h"
#include "op/stanza.h"

namespace calque {

void register_alias(Library& aten);
void register_alias(Library& aten) {
  aten.alias("absolute", "abs");
  aten.alias("absolute_", "abs_");
  aten.alias("arccos", "acos");
  aten.alias("arccos_", "acos_");
  aten.alias("arccosh", "acosh");
  aten.alias("arccosh_", "acosh_");
  aten.alias("arcsin", "asin");
  aten.alias("arcsin_", "asin_");
  aten.alias("arcsinh", "asinh");
  aten.alias("arcsinh_", "asinh_");
  aten.alias("arctan", "atan");
  aten.alias("arctan_", "atan_");
  aten.alias("arctanh", "atanh");
  aten.alias("arctanh_", "atanh_");
  aten.alias("clip", "clamp");
  aten.alias("clip_", "clamp_");
  aten.alias("fix", "trunc");
  aten.alias("fix_", "trunc_");
  aten.alias("negative", "neg");
  aten.alias("negative_", "neg_");
  aten.alias("special_digamma", "digamma");
  aten.alias("special_erf", "erf");
  aten.alias("special_erfc", "erfc");
  aten.alias("special_erfinv", "erfinv");
  aten.alias("special_exp2", "exp2");
  aten.alias("special_expit", "sigmoid");
  aten.alias("special_expm1", "expm1");
  aten.alias("special_gammaln", "lgamma");
  aten.alias("special_i0", "i0");
  aten.alias("special_log1p", "log1p");
  aten.alias("special_logit", "logit");
  aten.alias("special_multigammaln", "mvlgamma");
  aten.alias("special_polygamma", "polygamma");
  aten.alias("special_psi", "digamma");
  aten.alias("special_sinc", "sinc");

  // More than a name: an argument is filled in, or several operators are called.
  aten.def("special_round(Tensor self, *, int decimals=0) -> Tensor").composite([](const Tensor& self, int64_t decimals) {
    return round(self, decimals);
  });
  aten.def("special_round.out(Tensor self, *, int decimals=0, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, int64_t decimals, const Tensor& out) { return round(self, decimals, Out(out)); });
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
}

}  // namespace calque
