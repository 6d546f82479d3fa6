// Reductions: sum, mean, prod, the extremes and their positions, all, any, count_nonzero.
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/copying.h"
#include "kernel/cpu/reduce/reduce.h"

#include <limits>

#include "calque/op/aten/arithmetic.h"
#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/formulas.h"
#include "op/gradient/reduction_formulas.h"
#include "op/rule/geometry.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Reduction;
using rule::Kinds;
using Dims = std::optional<IntList>;

// Integers add up in int64 unless told otherwise.
DType sum_dtype(const Tensor& self, std::optional<DType> dtype) {
  return dtype ? *dtype : is_integral(self.dtype()) ? DType::int64 : self.dtype();
}

void check_sum_kinds(const char* op, DType dtype) {
  if (is_complex(dtype) || is_float8(dtype) || is_barebones_unsigned(dtype) || dtype == DType::bool_)
    rule::check_kinds(op, dtype, Kinds::reals);
}

// A sum in bool is whether anything is non-zero.
void sum_into(const Tensor& self, uint64_t dims, const Tensor& out) {
  if (out.dtype() == DType::bool_) return kernel::reduce(Reduction::any, self.dtype(), self, dims, out);
  check_sum_kinds("sum_cpu", out.dtype());
  kernel::reduce(Reduction::sum, out.dtype(), self, dims, out);
}
void prod_into(const Tensor& self, uint64_t dims, const Tensor& out) {
  if (out.dtype() == DType::bool_) return kernel::reduce(Reduction::all, self.dtype(), self, dims, out);
  check_sum_kinds("prod_cpu", out.dtype());
  kernel::reduce(Reduction::prod, out.dtype(), self, dims, out);
}

DType mean_dtype(const Tensor& self, std::optional<DType> dtype) {
  const DType d = dtype.value_or(self.dtype());
  if (!is_floating(d) && !is_complex(d))
    throw UserError(std::string("mean(): could not infer output dtype. ") + (dtype ? "Optional" : "Input") +
                    " dtype must be either a floating point or complex dtype. Got: " + std::string(name(d)));
  return d;
}
void mean_into(const Tensor& self, uint64_t dims, const Tensor& out) {
  check_sum_kinds("mean_cpu", out.dtype());
  // 16-bit results are rounded once, from float32.
  const DType common = is_reduced_float(out.dtype()) ? DType::float32 : out.dtype();
  kernel::reduce(Reduction::mean, common, self, dims, out);
}

Meta sum_rule(const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  return rule::reduction(self, rule::dims_or_all("sum", dim, self.dim()), keepdim, sum_dtype(self, dtype));
}
Meta mean_rule(const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  const DType d = mean_dtype(self, dtype);
  return rule::reduction(self, rule::dims_or_all("mean", dim, self.dim()), keepdim, d);
}

// ---- extremes -----------------------------------------------------------------------------------------------------
template <bool largest>
constexpr const char* amax_name = largest ? "amax" : "amin";
template <bool largest>
constexpr const char* max_name = largest ? "max" : "min";
template <bool largest>
constexpr const char* argmax_name = largest ? "argmax" : "argmin";

template <bool largest>
Meta amax_rule(const Tensor& self, IntList dim, bool keepdim) {
  const uint64_t dims = rule::dims_or_all(amax_name<largest>, dim, self.dim());
  rule::check_non_empty(amax_name<largest>, self, dims, !dim.empty());
  return rule::reduction(self, dims, keepdim, self.dtype());
}
template <bool largest>
void amax_kernel(const Tensor& self, IntList dim, bool, const Tensor& out) {
  rule::check_kinds(largest ? "max_values_cpu" : "min_values_cpu", self.dtype(), Kinds::reals_and_bool);
  kernel::reduce(largest ? Reduction::amax : Reduction::amin, self.dtype(), self,
                 rule::dims_or_all(amax_name<largest>, dim, self.dim()), out);
}

template <bool largest>
Meta max_rule(const Tensor& self) {
  rule::check_non_empty(max_name<largest>, self, 0, false);
  return rule::reduction(self, rule::all_dims(self.dim()), false, self.dtype());
}
template <bool largest>
void max_kernel(const Tensor& self, const Tensor& out) {
  rule::check_kinds(largest ? "max_all" : "min_all", self.dtype(), Kinds::reals_and_bool);
  kernel::reduce(largest ? Reduction::amax : Reduction::amin, self.dtype(), self, rule::all_dims(self.dim()), out);
}

template <bool largest>
std::array<Meta, 2> max_dim_rule(const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t dims = rule::dim_bits(max_name<largest>, {dim}, self.dim());
  rule::check_non_empty(max_name<largest>, self, dims, true);
  return {rule::reduction(self, dims, keepdim, self.dtype()), rule::reduction(self, dims, keepdim, DType::int64)};
}
template <bool largest>
void max_dim_kernel(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  rule::check_kinds(largest ? "max_cpu" : "min_cpu", self.dtype(), Kinds::reals_and_bool);
  kernel::reduce(largest ? Reduction::argmax : Reduction::argmin, self.dtype(), self,
                 rule::dim_bits(max_name<largest>, {dim}, self.dim()), values, indices);
}

template <bool largest>
Meta argmax_rule(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const uint64_t dims = rule::dim_or_all(argmax_name<largest>, dim, self.dim());
  if (self.dtype() == DType::bool_) throw UserError(std::string(argmax_name<largest>) + "(): does not support bool input");
  rule::check_non_empty(argmax_name<largest>, self, dims, dim.has_value());
  return rule::reduction(self, dims, keepdim, DType::int64);
}
template <bool largest>
void argmax_kernel(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  rule::check_kinds(largest ? "argmax_cpu" : "argmin_cpu", self.dtype(), Kinds::reals);
  kernel::reduce(largest ? Reduction::argmax : Reduction::argmin, self.dtype(), self,
                 rule::dim_or_all(argmax_name<largest>, dim, self.dim()), {}, out);
}

std::array<Meta, 2> aminmax_rule(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const uint64_t dims = rule::dim_or_all("aminmax", dim, self.dim());
  rule::check_non_empty("aminmax", self, dims, dim.has_value());
  const Meta m = rule::reduction(self, dims, keepdim, self.dtype());
  return {m, m};
}
void aminmax_kernel(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& min, const Tensor& max) {
  rule::check_kinds("aminmax", self.dtype(), Kinds::reals_and_bool);
  const uint64_t dims = rule::dim_or_all("aminmax", dim, self.dim());
  kernel::reduce(Reduction::amin, self.dtype(), self, dims, min);
  kernel::reduce(Reduction::amax, self.dtype(), self, dims, max);
}

// ---- all, any -----------------------------------------------------------------------------------------------------
template <bool is_any>
constexpr const char* truth_name = is_any ? "any" : "all";
// uint8 answers in uint8, for historical reasons.
DType truth_dtype(const Tensor& self) { return self.dtype() == DType::uint8 ? DType::uint8 : DType::bool_; }
template <bool is_any>
void truth_into(const Tensor& self, uint64_t dims, const Tensor& out) {
  if (is_complex(self.dtype())) rule::check_kinds(truth_name<is_any>, self.dtype(), Kinds::reals_and_bool);
  kernel::reduce(is_any ? Reduction::any : Reduction::all, self.dtype(), self, dims, out);
}
template <bool is_any>
Meta truth_rule(const Tensor& self) {
  return rule::reduction(self, rule::all_dims(self.dim()), false, truth_dtype(self));
}
template <bool is_any>
void truth_kernel(const Tensor& self, const Tensor& out) {
  truth_into<is_any>(self, rule::all_dims(self.dim()), out);
}
template <bool is_any>
Meta truth_dim_rule(const Tensor& self, int64_t dim, bool keepdim) {
  return rule::reduction(self, rule::dim_bits(truth_name<is_any>, {dim}, self.dim()), keepdim, truth_dtype(self));
}
template <bool is_any>
void truth_dim_kernel(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  truth_into<is_any>(self, rule::dim_bits(truth_name<is_any>, {dim}, self.dim()), out);
}
// An empty list reduces nothing here.
template <bool is_any>
uint64_t truth_dims(const Tensor& self, const Dims& dim) {
  return dim ? rule::dim_bits(truth_name<is_any>, *dim, self.dim()) : rule::all_dims(self.dim());
}
template <bool is_any>
Meta truth_dims_rule(const Tensor& self, Dims dim, bool keepdim) {
  return rule::reduction(self, truth_dims<is_any>(self, dim), keepdim, truth_dtype(self));
}
template <bool is_any>
void truth_dims_kernel(const Tensor& self, Dims dim, bool, const Tensor& out) {
  truth_into<is_any>(self, truth_dims<is_any>(self, dim), out);
}

void check_is_bool(const char* op, const Tensor& self) {
  if (self.dtype() != DType::bool_)
    throw UserError(std::string(op) + ": expected self of dtype bool, found " + std::string(name(self.dtype())));
}

void count_into(const Tensor& self, uint64_t dims, const Tensor& out) {
  if (is_complex(self.dtype())) rule::check_kinds("count_nonzero_cpu", self.dtype(), Kinds::reals_and_bool);
  kernel::reduce(Reduction::count_nonzero, self.dtype(), self, dims, out);
}

// Computed in out's dtype, which may be an integer one only if it is asked for by name.
Tensor nansum_out(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype, const Tensor& out) {
  if (dtype && *dtype != out.dtype())
    throw UserError("nansum: provided dtype must match dtype of result, found " + std::string(name(*dtype)) + " and " +
                    std::string(name(out.dtype())));
  if (!dtype && !is_integral(self.dtype()) && is_integral(out.dtype()) && !guard_or(self.sym_numel() == 0, false))
    rule::check_kinds("nansum_cpu", out.dtype(), Kinds::floats);
  const Tensor result = nansum(self, dim, keepdim, out.dtype());
  if (!rule::equal_sizes(out.sym_sizes(), result.sym_sizes())) out.resize_(result.sym_sizes());
  return out.copy_(result);
}

}  // namespace

void register_reductions(Library& aten);
void register_reductions(Library& aten) {
  aten.def("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .compute([](const Tensor& self, std::optional<DType> dtype) { return sum_rule(self, {}, false, dtype); },
               [](const Tensor& self, std::optional<DType>, const Tensor& out) {
                 sum_into(self, rule::all_dims(self.dim()), out);
               })
      .out("sum.out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad().expand(g.sizes("self")); });
  aten.def("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .tags(Tag::repeatable)
      .compute([](const Tensor& self, Dims dim, bool keepdim,
                  std::optional<DType> dtype) { return sum_rule(self, dim, keepdim, dtype); },
               [](const Tensor& self, Dims dim, bool, std::optional<DType>, const Tensor& out) {
                 sum_into(self, rule::dims_or_all("sum", dim, self.dim()), out);
               })
      .out("sum.IntList_out")
      .tags(Tag::dtype_from_out, Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::sum_backward(g, g.grad()); });
  aten.def("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .compute([](const Tensor& self, std::optional<DType> dtype) { return mean_rule(self, {}, false, dtype); },
               [](const Tensor& self, std::optional<DType>, const Tensor& out) {
                 mean_into(self, rule::all_dims(self.dim()), out);
               })
      .out("mean.dtype_out")
      .tags(Tag::dtype_from_out, Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) {
        return gradient::over(g.grad().expand(g.sizes("self")), Scalar(product(g.sizes("self"))));
      });
  aten.def("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .compute([](const Tensor& self, Dims dim, bool keepdim,
                  std::optional<DType> dtype) { return mean_rule(self, dim, keepdim, dtype); },
               [](const Tensor& self, Dims dim, bool, std::optional<DType>, const Tensor& out) {
                 mean_into(self, rule::dims_or_all("mean", dim, self.dim()), out);
               })
      .out("mean.out")
      .tags(Tag::dtype_from_out, Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::mean_backward(g, g.grad()); });
  aten.def("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .compute(
          [](const Tensor& self, std::optional<DType> dtype) {
            return rule::reduction(self, rule::all_dims(self.dim()), false, sum_dtype(self, dtype));
          },
          [](const Tensor& self, std::optional<DType>, const Tensor& out) {
            prod_into(self, rule::all_dims(self.dim()), out);
          })
      .out("prod.out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "self result", gradient::prod_backward);
  aten.def("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .tags(Tag::autocast_float32)
      .compute(
          [](const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
            return rule::reduction(self, rule::dim_bits("prod", {dim}, self.dim()), keepdim, sum_dtype(self, dtype));
          },
          [](const Tensor& self, int64_t dim, bool, std::optional<DType>, const Tensor& out) {
            prod_into(self, rule::dim_bits("prod", {dim}, self.dim()), out);
          })
      .out("prod.int_out")
      .tags(Tag::dtype_from_out, Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "self result", gradient::prod_dim_backward);
  aten.def("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .compute(
          [](const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype) {
            if (is_complex(self.dtype())) throw UserError("nansum does not support complex inputs");
            return sum_rule(self, dim, keepdim, dtype);
          },
          [](const Tensor& self, Dims dim, bool, std::optional<DType>, const Tensor& out) {
            const uint64_t dims = rule::dims_or_all("nansum", dim, self.dim());
            if (is_integral(self.dtype())) return sum_into(self, dims, out);
            if (is_integral(out.dtype())) {  // NaN goes before the conversion
              const Tensor clean = make_tensor(rule::contiguous_like(self, self.dtype()));
              const double infinity = std::numeric_limits<double>::infinity();
              kernel::activation(kernel::Activation::nan_to_num, self.dtype(), self,
                                 {Scalar(0.0), Scalar(infinity), Scalar(-infinity)}, false, clean);
              return sum_into(clean, dims, out);
            }
            check_sum_kinds("nansum_cpu", out.dtype());
            kernel::reduce(Reduction::nansum, out.dtype(), self, dims, out);
          })
      .tags(Tag::reduction, Tag::strided_out)
      .gradient("self", "self", [](const Gradients& g) {
        const Tensor grad = g.grad().to(g.dtype("self")), counted = g["self"].isnan().logical_not();
        return gradient::sum_backward(g, grad).mul(counted);
      });
  aten.def(
          "nansum.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> "
          "Tensor(a!)")
      .composite(nansum_out);

  aten.def("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
      .compute(amax_rule<true>, amax_kernel<true>)
      .out("amax.out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "self result", gradient::extremum_backward);
  aten.def("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
      .compute(amax_rule<false>, amax_kernel<false>)
      .out("amin.out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .gradient("self", "self result", gradient::extremum_backward);
  aten.def("max(Tensor self) -> Tensor")
      .compute(max_rule<true>, max_kernel<true>)
      .out("max.unary_out")
      .tags(Tag::cast_out, Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", gradient::shared_evenly);
  aten.def("min(Tensor self) -> Tensor")
      .compute(max_rule<false>, max_kernel<false>)
      .out("min.unary_out")
      .tags(Tag::cast_out, Tag::reduction, Tag::strided_out)
      .gradient("self", "self result", gradient::shared_evenly);
  aten.def("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(max_dim_rule<true>, max_dim_kernel<true>)
      .out("max.dim_max(max, max_values)")
      .tags(Tag::reduction, Tag::core)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
  aten.def("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(max_dim_rule<false>, max_dim_kernel<false>)
      .out("min.dim_min(min, min_indices)")
      .tags(Tag::reduction, Tag::core)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
  aten.def("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
      .compute(aminmax_rule, aminmax_kernel)
      .out("aminmax.out(min, max)")
      .tags(Tag::reduction)
      .gradient("self", "self result0 result1", gradient::aminmax_backward);
  aten.def("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
      .compute(argmax_rule<true>, argmax_kernel<true>)
      .out("argmax.out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .no_gradient();
  aten.def("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
      .compute(argmax_rule<false>, argmax_kernel<false>)
      .out("argmin.out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .no_gradient();

  aten.def("all(Tensor self) -> Tensor")
      .compute(truth_rule<false>, truth_kernel<false>)
      .out("all.all_out")
      .tags(Tag::reduction, Tag::strided_out)
      .no_gradient();
  aten.def("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .compute(truth_dim_rule<false>, truth_dim_kernel<false>)
      .out("all.out")
      .tags(Tag::reduction, Tag::strided_out)
      .no_gradient();
  aten.def("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
      .cpp_name("all_dims")
      .compute(truth_dims_rule<false>, truth_dims_kernel<false>)
      .out("all.dims_out")
      .tags(Tag::reduction, Tag::strided_out)
      .no_gradient();
  aten.def("any(Tensor self) -> Tensor")
      .compute(truth_rule<true>, truth_kernel<true>)
      .out("any.all_out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .no_gradient();
  aten.def("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .compute(truth_dim_rule<true>, truth_dim_kernel<true>)
      .out("any.out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .no_gradient();
  aten.def("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")
      .cpp_name("any_dims")
      .compute(truth_dims_rule<true>, truth_dims_kernel<true>)
      .out("any.dims_out")
      .tags(Tag::reduction, Tag::strided_out, Tag::core)
      .no_gradient();
  aten.def("_is_all_true(Tensor self) -> Tensor")
      .compute(
          [](const Tensor& self) {
            check_is_bool("_is_all_true", self);
            return truth_rule<false>(self);
          },
          truth_kernel<false>)
      .tags(Tag::reduction)
      .no_gradient();
  aten.def("_is_any_true(Tensor self) -> Tensor")
      .compute(
          [](const Tensor& self) {
            check_is_bool("_is_any_true", self);
            return truth_rule<true>(self);
          },
          truth_kernel<true>)
      .tags(Tag::reduction)
      .no_gradient();

  aten.def("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
      .compute(
          [](const Tensor& self, IntList dim) {
            return rule::reduction(self, rule::dims_or_all("count_nonzero", dim, self.dim()), false, DType::int64);
          },
          [](const Tensor& self, IntList dim, const Tensor& out) {
            count_into(self, rule::dims_or_all("count_nonzero", dim, self.dim()), out);
          })
      .out("count_nonzero.dim_IntList_out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out)
      .no_gradient();
  aten.def("count_nonzero(Tensor self, int? dim=None) -> Tensor")
      .compute(
          [](const Tensor& self, std::optional<int64_t> dim) {
            return rule::reduction(self, rule::dim_or_all("count_nonzero", dim, self.dim()), false, DType::int64);
          },
          [](const Tensor& self, std::optional<int64_t> dim, const Tensor& out) {
            count_into(self, rule::dim_or_all("count_nonzero", dim, self.dim()), out);
          })
      .out("count_nonzero.out")
      .tags(Tag::dense_out, Tag::reduction, Tag::strided_out)
      .no_gradient();
}

}  // namespace calque
