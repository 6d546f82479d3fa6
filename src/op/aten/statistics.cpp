// Variance and standard deviation, medians, modes.
#include "kernel/cpu/index/order.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/reduce/reduce.h"

#include "calque/base/warning.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/statistics.h"
#include "op/gradient/formulas.h"
#include "op/gradient/reduction_formulas.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Reduction;
using Dims = std::optional<IntList>;
using Correction = std::optional<Scalar>;

template <bool root>
constexpr const char* spread_name = root ? "std" : "var";

void check_spread_dtype(DType d) {
  if (!is_floating(d) && !is_complex(d))
    throw UserError("std and var only support floating point and complex dtypes, found " + std::string(name(d)));
}
template <bool root>
Meta spread_rule(const Tensor& self, Dims dim, Correction, bool keepdim) {
  check_spread_dtype(self.dtype());
  return rule::reduction(self, rule::dims_or_all(spread_name<root>, dim, self.dim()), keepdim, to_real(self.dtype()));
}
template <bool root>
std::array<Meta, 2> spread_mean_rule(const Tensor& self, Dims dim, Correction correction, bool keepdim) {
  const Meta m = spread_rule<root>(self, dim, correction, keepdim);
  return {m, m};
}
// PyTorch updates the mean value by value: after an infinity the next difference is NaN. Only an infinity in the last
// place gives an infinite mean.
void settle_infinite_means(const Tensor& self, uint64_t dims, const Tensor& mean) {
  const Tensor means = mean.to(DType::float64).contiguous();
  const int64_t n = means.numel();
  const double* m = means.data_as<double>();
  if (std::none_of(m, m + n, [](double v) { return std::isinf(v); })) return;
  // Rows of all reduced dimensions, in order.
  SmallVector<int64_t, 8> order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (!(dims >> d & 1U)) order.push_back(d);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (dims >> d & 1U) order.push_back(d);
  const Tensor rows = (self.dim() ? self.permute(IntList(order)) : self).to(DType::float64).contiguous();
  const double* x = rows.data_as<double>();
  const int64_t length = rows.numel() / n;
  double* settled = means.mutable_data_as<double>();
  for (int64_t i = 0; i < n; ++i) {
    const double* row = x + i * length;
    if (std::isinf(m[i]) && std::any_of(row, row + length - 1, [](double v) { return std::isinf(v); }))
      settled[i] = std::numeric_limits<double>::quiet_NaN();
  }
  mean.copy_(means.view(mean.sym_sizes()), false);
}
template <bool root>
void spread_into(const Tensor& self, const Dims& dim, const Correction& correction, const Tensor& out, const Tensor& mean) {
  rule::check_kinds("std_cpu", self.dtype(), rule::Kinds::floats);
  kernel::ReduceParameters p;
  p.p = correction ? correction->to_double() : 1;
  p.root = root;
  const uint64_t dims = rule::dims_or_all(spread_name<root>, dim, self.dim());
  int64_t count = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (dims >> d & 1U) count *= self.size(d);
  if (static_cast<double>(count) <= p.p && out.numel())
    warn(std::string(spread_name<root>) +
         "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided "
         "by output numel).");
  if (self.numel() == 0) {
    const Scalar nan(std::numeric_limits<double>::quiet_NaN());
    kernel::fill(out, nan);
    if (mean.defined()) kernel::fill(mean, nan);
    return;
  }
  kernel::reduce(Reduction::variance, self.dtype(), self, dims, out, mean, p);
  if (mean.defined()) settle_infinite_means(self, dims, mean);
}
template <bool root>
void spread_kernel(const Tensor& self, Dims dim, Correction correction, bool, const Tensor& out) {
  spread_into<root>(self, dim, correction, out, {});
}
template <bool root>
void spread_mean_kernel(const Tensor& self, Dims dim, Correction correction, bool, const Tensor& out, const Tensor& mean) {
  spread_into<root>(self, dim, correction, out, mean);
}

// The out= forms compute in out's dtype, those of one number in self's; for 16-bit values PyTorch has no kernel that does the latter.
template <bool root>
Tensor spread_out(const char* op, const Tensor& self, const Dims& dim, const Correction& correction, bool keepdim,
                  const Tensor& out) {
  check_spread_dtype(self.dtype());
  bool wider =
      is_floating(out.dtype()) && promote_types(self.dtype(), out.dtype()) == out.dtype() && self.dtype() != out.dtype();
  const Meta meta = spread_rule<root>(self, dim, correction, keepdim);
  if (wider && guard_or(product(meta.sizes) == 1, false)) {
    if (is_reduced_float(self.dtype()) && !is_reduced_float(out.dtype()) && guard_or(self.sym_numel() != 0, true))
      throw UserError(ErrorKind::unsupported_operator, std::string(op) + ": no kernel reduces " +
                                                           std::string(name(self.dtype())) + " to one " +
                                                           std::string(name(out.dtype())));
    wider = false;
  }
  const Tensor x = wider ? self.to(out.dtype()) : self;
  const Tensor result = root ? x.std(dim, correction, keepdim) : x.var(dim, correction, keepdim);
  op_detail::prepare_out(get_operator(op), result.meta(), out);
  return out.copy_(result, false);
}
template <bool root>
Tensor spread_correction_out(const Tensor& self, Dims dim, Correction correction, bool keepdim, const Tensor& out) {
  return spread_out<root>(root ? "aten::std.correction_out" : "aten::var.correction_out", self, dim, correction, keepdim,
                          out);
}
template <bool root>
Tensor spread_dim_out(const Tensor& self, Dims dim, bool unbiased, bool keepdim, const Tensor& out) {
  return spread_out<root>(root ? "aten::std.out" : "aten::var.out", self, dim, Scalar(unbiased ? 1 : 0), keepdim, out);
}

Correction bessel(bool unbiased) { return Scalar(unbiased ? 1 : 0); }
using Two = std::tuple<Tensor, Tensor>;

// ---- medians, modes -----------------------------------------------------------------------------------------------
template <bool ignore_nan>
constexpr const char* median_name = ignore_nan ? "nanmedian" : "median";
template <bool ignore_nan>
std::array<Meta, 2> median_dim_rule(const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t dims = rule::dim_bits(median_name<ignore_nan>, {dim}, self.dim());
  rule::check_non_empty(median_name<ignore_nan>, self, dims, true);
  return {rule::reduction(self, dims, keepdim, self.dtype()), rule::reduction(self, dims, keepdim, DType::int64)};
}
template <bool ignore_nan>
void median_dim_kernel(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values, const Tensor& indices) {
  rule::check_kinds("median_out", self.dtype(), rule::Kinds::reals);
  kernel::median(self, rule::one_dim(median_name<ignore_nan>, dim, self), keepdim, ignore_nan, values, indices);
}
template <bool ignore_nan>
void median_kernel(const Tensor& self, const Tensor& out) {
  if (self.numel()) rule::check_kinds("median_cpu", self.dtype(), rule::Kinds::reals);
  kernel::median_all(self, ignore_nan, out);
}
Meta median_rule(const Tensor& self) { return rule::reduction(self, rule::all_dims(self.dim()), false, self.dtype()); }

std::array<Meta, 2> mode_rule(const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t dims = rule::dim_bits("mode", {dim}, self.dim());
  rule::check_non_empty("mode", self, dims, true);
  return {rule::reduction(self, dims, keepdim, self.dtype()), rule::reduction(self, dims, keepdim, DType::int64)};
}
void mode_kernel(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values, const Tensor& indices) {
  rule::check_kinds("mode", self.dtype(), rule::Kinds::reals_and_bool);
  kernel::mode(self, rule::one_dim("mode", dim, self), keepdim, values, indices);
}

// ---- gradients ------------------------------------------------------------------------------------------------------
Tensor with_mean(const Gradients& g, const Tensor& of_spread) {
  if (!g.grad(1).defined()) return of_spread;
  const Tensor of_mean = gradient::mean_backward(g, g.grad(1));
  return of_spread.defined() ? of_spread.add(of_mean) : of_mean;
}
Tensor var_mean_gradient(const Gradients& g) {
  return with_mean(g, g.grad(0).defined() ? gradient::var_backward(g, g.grad(0)) : Tensor());
}
Tensor std_mean_gradient(const Gradients& g) {
  return with_mean(g, g.grad(0).defined() ? gradient::std_backward(g, g.grad(0), g["result0"]) : Tensor());
}

}  // namespace

void register_statistics(Library& aten);
void register_statistics(Library& aten) {
  aten.def("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .compute(spread_rule<false>, spread_kernel<false>)
      .tags(Tag::reduction, Tag::core)
      .gradient("self", "self", [](const Gradients& g) { return gradient::var_backward(g, g.grad()); });
  aten.def(
          "var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) "
          "out) -> Tensor(a!)")
      .composite(spread_correction_out<false>)
      .tags(Tag::out, Tag::cast_out);
  aten.def("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .compute(spread_rule<true>, spread_kernel<true>)
      .tags(Tag::reduction)
      .gradient("self", "self result", [](const Gradients& g) { return gradient::std_backward(g, g.grad(), g["result"]); });
  aten.def(
          "std.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) "
          "out) -> Tensor(a!)")
      .composite(spread_correction_out<true>)
      .tags(Tag::out, Tag::cast_out);
  aten.def(
          "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
          "Tensor)")
      .compute(spread_mean_rule<false>, spread_mean_kernel<false>)
      .out("var_mean.correction_out")
      .tags(Tag::dense_out, Tag::reduction)
      .gradient("self", "self", var_mean_gradient);
  aten.def(
          "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
          "Tensor)")
      .compute(spread_mean_rule<true>, spread_mean_kernel<true>)
      .out("std_mean.correction_out")
      .tags(Tag::dense_out, Tag::reduction)
      .gradient("self", "self result0", std_mean_gradient);
  aten.def("var(Tensor self, bool unbiased=True) -> Tensor")
      .cpp_name("var_unbiased")
      .composite([](const Tensor& self, bool unbiased) -> Tensor { return self.var(Dims(), bessel(unbiased), false); });
  aten.def("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Tensor {
        return self.var(dim, bessel(unbiased), keepdim);
      })
      .tags(Tag::core);
  aten.def("var.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)")
      .composite(spread_dim_out<false>)
      .tags(Tag::out, Tag::cast_out);
  aten.def("std(Tensor self, bool unbiased=True) -> Tensor")
      .cpp_name("std_unbiased")
      .composite([](const Tensor& self, bool unbiased) -> Tensor { return self.std(Dims(), bessel(unbiased), false); });
  aten.def("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Tensor {
        return self.std(dim, bessel(unbiased), keepdim);
      });
  aten.def("std.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::decomposes)
      .composite(spread_dim_out<true>)
      .tags(Tag::out, Tag::cast_out);
  aten.def("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
      .cpp_name("var_mean_unbiased")
      .composite([](const Tensor& self, bool unbiased) -> Two { return var_mean(self, Dims(), bessel(unbiased), false); });
  aten.def("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Two {
        return var_mean(self, dim, bessel(unbiased), keepdim);
      });
  aten.def("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
      .cpp_name("std_mean_unbiased")
      .composite([](const Tensor& self, bool unbiased) -> Two { return std_mean(self, Dims(), bessel(unbiased), false); });
  aten.def("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Two {
        return std_mean(self, dim, bessel(unbiased), keepdim);
      });

  aten.def("median(Tensor self) -> Tensor")
      .compute(median_rule, median_kernel<false>)
      .out("median.out")
      .tags(Tag::dense_out, Tag::reduction)
      .gradient("self", "self result", gradient::shared_evenly);
  aten.def("nanmedian(Tensor self) -> Tensor")
      .compute(median_rule, median_kernel<true>)
      .out("nanmedian.out")
      .tags(Tag::dense_out, Tag::reduction)
      .gradient("self", "self result", gradient::shared_evenly);
  aten.def("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(median_dim_rule<false>, median_dim_kernel<false>)
      .out("median.dim_values(values, indices)")
      .tags(Tag::reduction)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
  aten.def("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(median_dim_rule<true>, median_dim_kernel<true>)
      .out("nanmedian.dim_values(values, indices)")
      .tags(Tag::reduction)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
  aten.def("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(mode_rule, mode_kernel)
      .out("mode.values(values, indices)")
      .tags(Tag::reduction)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
}

}  // namespace calque
