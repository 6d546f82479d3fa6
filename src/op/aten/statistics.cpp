// Variance and standard deviation, medians, modes.
#include "kernel/cpu/order.h"
#include "kernel/cpu/reduce.h"

#include "calque/base/warning.h"
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
  if (!is_floating(d) && !is_complex(d)) throw UserError("std and var only support floating point and complex dtypes, found " + std::string(name(d)));
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
    warn(std::string(spread_name<root>) + "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel).");
  kernel::reduce(Reduction::variance, self.dtype(), self, dims, out, mean, p);
}
template <bool root>
void spread_kernel(const Tensor& self, Dims dim, Correction correction, bool, const Tensor& out) { spread_into<root>(self, dim, correction, out, {}); }
template <bool root>
void spread_mean_kernel(const Tensor& self, Dims dim, Correction correction, bool, const Tensor& out, const Tensor& mean) { spread_into<root>(self, dim, correction, out, mean); }

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
  rule::check_kinds("median_cpu", self.dtype(), rule::Kinds::reals);
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

}  // namespace

void register_statistics(Library& aten);
void register_statistics(Library& aten) {
  aten.def("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .compute(spread_rule<false>, spread_kernel<false>)
      .out("var.correction_out")
      .tags(Tag::cast_out, Tag::reduction, Tag::strided_out, Tag::core);
  aten.def("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .compute(spread_rule<true>, spread_kernel<true>)
      .out("std.correction_out")
      .tags(Tag::cast_out, Tag::reduction, Tag::strided_out);
  aten.def("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)")
      .compute(spread_mean_rule<false>, spread_mean_kernel<false>)
      .out("var_mean.correction_out")
      .tags(Tag::exact_out, Tag::dense_out, Tag::reduction);
  aten.def("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)")
      .compute(spread_mean_rule<true>, spread_mean_kernel<true>)
      .out("std_mean.correction_out")
      .tags(Tag::exact_out, Tag::dense_out, Tag::reduction);
  aten.def("var(Tensor self, bool unbiased=True) -> Tensor").composite([](const Tensor& self, bool unbiased) -> Tensor { return self.var(Dims(), bessel(unbiased), false); });
  aten.def("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Tensor { return self.var(dim, bessel(unbiased), keepdim); })
      .out("var.out")
      .tags(Tag::cast_out, Tag::core);
  aten.def("std(Tensor self, bool unbiased=True) -> Tensor").composite([](const Tensor& self, bool unbiased) -> Tensor { return self.std(Dims(), bessel(unbiased), false); });
  aten.def("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Tensor { return self.std(dim, bessel(unbiased), keepdim); })
      .out("std.out").tags(Tag::cast_out);
  aten.def("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)").composite([](const Tensor& self, bool unbiased) -> Two { return var_mean(self, Dims(), bessel(unbiased), false); });
  aten.def("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Two { return var_mean(self, dim, bessel(unbiased), keepdim); });
  aten.def("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)").composite([](const Tensor& self, bool unbiased) -> Two { return std_mean(self, Dims(), bessel(unbiased), false); });
  aten.def("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
      .composite([](const Tensor& self, Dims dim, bool unbiased, bool keepdim) -> Two { return std_mean(self, dim, bessel(unbiased), keepdim); });

  aten.def("median(Tensor self) -> Tensor").compute(median_rule, median_kernel<false>).out("median.out").tags(Tag::exact_out, Tag::dense_out, Tag::reduction);
  aten.def("nanmedian(Tensor self) -> Tensor").compute(median_rule, median_kernel<true>).out("nanmedian.out").tags(Tag::exact_out, Tag::dense_out, Tag::reduction);
  aten.def("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(median_dim_rule<false>, median_dim_kernel<false>)
      .out("median.dim_values(values, indices)")
      .tags(Tag::reduction);
  aten.def("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(median_dim_rule<true>, median_dim_kernel<true>)
      .out("nanmedian.dim_values(values, indices)")
      .tags(Tag::reduction);
  aten.def("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)").compute(mode_rule, mode_kernel).out("mode.values(values, indices)").tags(Tag::reduction);
}

}  // namespace calque
