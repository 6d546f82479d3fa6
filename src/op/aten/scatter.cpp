// gather and the scatter family: one index for each element along one dimension.
#include "kernel/cpu/index/scatter.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/indexing.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Put;
using kernel::ScatterReduction;
using rule::OpName;

int64_t dims_of(const Tensor& t) { return std::max<int64_t>(1, t.dim()); }
SymInt size_of(const Tensor& t, int64_t d) { return t.dim() == 0 ? SymInt(1) : t.sym_sizes()[static_cast<size_t>(d)]; }

void check_index_dtype(const char* op, const Tensor& index) {
  if (index.dtype() != DType::int64 && index.dtype() != DType::int32)
    throw UserError(std::string(op) + ": Expected dtype int32/int64 for index, found " + std::string(name(index.dtype())));
}
void check_dims(const char* op, const Tensor& self, const Tensor& index, const char* what) {
  if (dims_of(self) != dims_of(index))
    throw UserError(std::string(op) + ": Index tensor must have the same number of dimensions as " + what +
                    ", found index of sizes " + str(index.sym_sizes()) + " and " + what + " of sizes " +
                    str(self.sym_sizes()));
}

Meta gather_rule(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  dim = wrap_dim(dim, self.dim(), "gather");
  if (!guard_or(index.sym_numel() == 0, false)) {
    check_index_dtype("gather", index);
    check_dims("gather", self, index, "input");
    for (int64_t d = 0; d < dims_of(self); ++d)
      if (d != dim && !check(size_of(index, d) <= size_of(self, d)))
        throw UserError("gather: Size does not match at dimension " + std::to_string(d) + ": expected index " +
                        str(index.sym_sizes()) + " to be no larger than self " + str(self.sym_sizes()) +
                        " apart from dimension " + std::to_string(dim));
  }
  return rule::contiguous(index.sym_sizes(), self.dtype(), self.device());
}
void gather_kernel(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  kernel::gather(self, wrap_dim(dim, self.dim(), "gather"), index, out);
}

void check_scatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  dim = wrap_dim(dim, self.dim(), op);
  const bool empty = guard_or(index.sym_numel() == 0, false);
  if (!empty) check_index_dtype(op, index);
  if (src && src->dtype() != self.dtype())
    throw UserError(std::string(op) + ": Expected self.dtype to be equal to src.dtype, found self " +
                    std::string(name(self.dtype())) + " and src " + std::string(name(src->dtype())));
  if (empty) return;
  check_dims(op, self, index, "self");
  if (src) check_dims(op, *src, index, "src");
  for (int64_t d = 0; d < dims_of(self); ++d) {
    const bool fits =
        (d == dim || check(size_of(index, d) <= size_of(self, d))) && (!src || check(size_of(index, d) <= size_of(*src, d)));
    if (!fits)
      throw UserError(std::string(op) + ": Expected index " + str(index.sym_sizes()) + " to be no larger than self " +
                      str(self.sym_sizes()) + " apart from dimension " + std::to_string(dim) +
                      (src ? " and to be no larger size than src " + str(src->sym_sizes()) : std::string()));
  }
}
void start_from(const char* op, const Tensor& self, const Tensor& out, const Tensor& index, const Tensor* src) {
  if (!out.is_same(self)) {
    kernel::copy(self, out);
    return;
  }
  rule::check_no_overlap(op, out, index);
  if (src) rule::check_no_overlap(op, out, *src);
}

Put scatter_put(std::string_view reduce) {
  if (reduce == "add") return Put::add;
  if (reduce == "multiply") return Put::multiply;
  throw UserError("scatter: reduce argument must be either add or multiply, found '" + std::string(reduce) + "'");
}
template <OpName op>
Meta scatter_src_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter(op.text, self, dim, index, &src);
  return rule::contiguous(self);
}
template <OpName op, Put how>
void scatter_src_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  start_from(op.text, self, out, index, &src);
  kernel::scatter(op.text, out, wrap_dim(dim, self.dim(), op.text), index, src, how);
}
Meta scatter_value_rule(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
  check_scatter("scatter", self, dim, index, nullptr);
  return rule::contiguous(self);
}
void scatter_value_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, const Tensor& out) {
  start_from("scatter", self, out, index, nullptr);
  kernel::scatter("scatter", out, wrap_dim(dim, self.dim(), "scatter"), index, value, Put::assign);
}
Meta scatter_named_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  scatter_put(reduce);
  check_scatter("scatter", self, dim, index, &src);
  return rule::contiguous(self);
}
void scatter_named_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                          const Tensor& out) {
  start_from("scatter", self, out, index, &src);
  kernel::scatter("scatter", out, wrap_dim(dim, self.dim(), "scatter"), index, src, scatter_put(reduce));
}
Meta scatter_value_named_rule(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&, std::string_view reduce) {
  scatter_put(reduce);
  check_scatter("scatter", self, dim, index, nullptr);
  return rule::contiguous(self);
}
void scatter_value_named_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                                std::string_view reduce, const Tensor& out) {
  start_from("scatter", self, out, index, nullptr);
  kernel::scatter("scatter", out, wrap_dim(dim, self.dim(), "scatter"), index, value, scatter_put(reduce));
}

ScatterReduction reduction(std::string_view reduce) {
  if (reduce == "sum") return ScatterReduction::sum;
  if (reduce == "prod") return ScatterReduction::prod;
  if (reduce == "mean") return ScatterReduction::mean;
  if (reduce == "amax" || reduce == "max") return ScatterReduction::amax;
  if (reduce == "amin" || reduce == "min") return ScatterReduction::amin;
  throw UserError("scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got " +
                  std::string(reduce));
}
Meta scatter_reduce_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                         bool) {
  const ScatterReduction r = reduction(reduce);
  check_scatter("scatter_reduce", self, dim, index, &src);
  if (r == ScatterReduction::mean && self.dtype() == DType::bool_)
    throw UserError(ErrorKind::unsupported_operator, "scatter_reduce: mean is not implemented for 'bool'");
  return rule::contiguous(self);
}
void scatter_reduce_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                           bool include_self, const Tensor& out) {
  start_from("scatter_reduce", self, out, index, &src);
  kernel::scatter_reduce("scatter_reduce", out, wrap_dim(dim, self.dim(), "scatter_reduce"), index, src, reduction(reduce),
                         include_self);
}

}  // namespace

void register_scatter(Library& aten);
void register_scatter(Library& aten) {
  aten.def("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
      .compute(gather_rule, gather_kernel)
      .out("gather.out")
      .tags(Tag::unshared_out, Tag::core, Tag::strided_out)
      .gradient("self", "self index", gradient::of_gather);
  aten.def("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .compute(scatter_src_rule<"scatter">, scatter_src_kernel<"scatter", Put::assign>)
      .in_place("scatter_.src")
      .out("scatter.src_out")
      .tags(Tag::core, Tag::self_in_out, Tag::strided_out)
      .gradient("self", "index",
                [](const Gradients& g) { return g.grad().scatter(g.integer("dim"), g["index"], Scalar(0)); })
      .gradient("src", "index", [](const Gradients& g) { return g.grad().gather(g.integer("dim"), g["index"]); });
  aten.def("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .compute(scatter_value_rule, scatter_value_kernel)
      .in_place("scatter_.value")
      .out("scatter.value_out")
      .tags(Tag::core, Tag::self_in_out, Tag::strided_out)
      .gradient("self", "index",
                [](const Gradients& g) { return g.grad().scatter(g.integer("dim"), g["index"], Scalar(0)); });
  aten.def("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
      .compute(scatter_named_rule, scatter_named_kernel)
      .in_place("scatter_.reduce")
      .out("scatter.reduce_out")
      .tags(Tag::self_in_out, Tag::strided_out);
  aten.def("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor")
      .compute(scatter_value_named_rule, scatter_value_named_kernel)
      .in_place("scatter_.value_reduce")
      .out("scatter.value_reduce_out")
      .tags(Tag::self_in_out, Tag::strided_out);
  aten.def("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .compute(scatter_src_rule<"scatter_add">, scatter_src_kernel<"scatter_add", Put::add>)
      .in_place("scatter_add_")
      .out("scatter_add.out")
      .tags(Tag::core, Tag::self_in_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); })
      .gradient("src", "index", [](const Gradients& g) { return g.grad().gather(g.integer("dim"), g["index"]); });
  aten.def(
          "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
          "Tensor")
      .compute(scatter_reduce_rule, scatter_reduce_kernel)
      .in_place("scatter_reduce_.two")
      .out("scatter_reduce.two_out")
      .tags(Tag::core, Tag::self_in_out, Tag::strided_out)
      .gradient("self src", "self index src result", gradient::of_scatter_reduce);
}

}  // namespace calque
