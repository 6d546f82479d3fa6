// Scans: cumsum, cumprod, logcumsumexp, cummax, cummin, diff.
#include "kernel/cpu/reduce/scan.h"

#include "calque/op/aten/reductions_backward.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/formulas.h"
#include "op/gradient/reduction_formulas.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Scan;

DType scan_dtype(const Tensor& self, std::optional<DType> dtype) {
  return dtype ? *dtype : is_integral(self.dtype()) ? DType::int64 : self.dtype();
}

template <Scan fn>
constexpr const char* scan_name = fn == Scan::sum ? "cumsum" : "cumprod";

template <Scan fn>
Meta scan_rule(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  rule::one_dim(scan_name<fn>, dim, self);
  return rule::contiguous_like(self, scan_dtype(self, dtype));
}
template <Scan fn>
void scan_kernel(const Tensor& self, int64_t dim, std::optional<DType>, const Tensor& out) {
  rule::one_dim(scan_name<fn>, dim, self);
  if (self.dim() == 0 || self.numel() == 0) return kernel::copy(self, out);  // nothing is added: -0.0 stays
  rule::check_kinds(fn == Scan::sum ? "cumsum_out_cpu" : "cumprod_out_cpu", out.dtype(), rule::Kinds::reals);
  kernel::scan(fn, self, rule::one_dim(scan_name<fn>, dim, self), out);
}
template <Scan fn>
void scan_in_place_rule(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  rule::one_dim(scan_name<fn>, dim, self);
  if (dtype && *dtype != self.dtype())
    throw UserError(std::string(scan_name<fn>) + "_: Bad in-place call: input tensor dtype " +
                    std::string(name(self.dtype())) + " and output tensor dtype " + std::string(name(*dtype)) +
                    " should match");
}
// In place the computation is done in self's dtype, whatever the default would be.
template <Scan fn>
void scan_in_place(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  scan_in_place_rule<fn>(self, dim, dtype);
  if (self.dim() == 0 || self.numel() == 0) return;
  rule::check_kinds(fn == Scan::sum ? "cumsum_out_cpu" : "cumprod_out_cpu", self.dtype(), rule::Kinds::reals);
  kernel::scan(fn, self, rule::one_dim(scan_name<fn>, dim, self), self);
}

template <bool largest>
std::array<Meta, 2> extreme_rule(const Tensor& self, int64_t dim) {
  rule::one_dim(largest ? "cummax" : "cummin", dim, self);
  return {rule::contiguous_like(self, self.dtype()), rule::contiguous_like(self, DType::int64)};
}
template <bool largest>
void extreme_kernel(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  rule::check_kinds(largest ? "cummax_helper_cpu" : "cummin_helper_cpu", self.dtype(), rule::Kinds::reals_and_bool);
  kernel::scan_extreme(largest, self, rule::one_dim("cummax", dim, self), values, indices);
}

Tensor cumsum_gradient(const Gradients& g) {
  const Tensor grad = g.grad().to(g.dtype("self"));
  const int64_t dim = g.integer("dim");
  if (guard_or(grad.sym_numel() <= 1, false) || guard_or(grad.sym_size(dim) == 1, false)) return grad;
  return grad.flip({dim}).cumsum(dim).flip({dim});
}

}  // namespace

void register_scans(Library& aten);
void register_scans(Library& aten) {
  aten.def("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .compute(scan_rule<Scan::sum>, scan_kernel<Scan::sum>)
      .out("cumsum.out")
      .tags(Tag::dtype_from_out, Tag::strided_out, Tag::core)
      .gradient("self", "", cumsum_gradient);
  aten.def("cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)")
      .mutate(scan_in_place_rule<Scan::sum>, scan_in_place<Scan::sum>)
      .gradient("self", "", cumsum_gradient);
  aten.def("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .compute(scan_rule<Scan::prod>, scan_kernel<Scan::prod>)
      .out("cumprod.out")
      .tags(Tag::dtype_from_out, Tag::strided_out)
      .gradient("self", "self result", [](const Gradients& g) {
        return cumprod_backward(g.grad().to(g.dtype("self")), g["self"], g.integer("dim"), g["result"]);
      });
  aten.def("cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)")
      .mutate(scan_in_place_rule<Scan::prod>, scan_in_place<Scan::prod>)
      .gradient("self", "self result", [](const Gradients& g) {
        return cumprod_backward(g.grad().to(g.dtype("self")), g["self"], g.integer("dim"), g["result"]);
      });
  aten.def("logcumsumexp(Tensor self, int dim) -> Tensor")
      .compute(
          [](const Tensor& self, int64_t dim) {
            rule::one_dim("logcumsumexp", dim, self);
            return rule::contiguous_like(self, self.dtype());
          },
          [](const Tensor& self, int64_t dim, const Tensor& out) {
            rule::check_kinds("logcumsumexp_out_cpu", self.dtype(), rule::Kinds::floats);
            kernel::scan(Scan::logsumexp, self, rule::one_dim("logcumsumexp", dim, self), out);
          })
      .out("logcumsumexp.out")
      .tags(Tag::strided_out)
      .gradient("self", "self result", gradient::logcumsumexp_backward);
  aten.def("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
      .compute(extreme_rule<true>, extreme_kernel<true>)
      .out("cummax.out(values, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) { return cummaxmin_backward(g.grad(), g["self"], g["result1"], g.integer("dim")); });
  aten.def("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)")
      .compute(extreme_rule<false>, extreme_kernel<false>)
      .out("cummin.out(values, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) { return cummaxmin_backward(g.grad(), g["self"], g["result1"], g.integer("dim")); });
}

}  // namespace calque
