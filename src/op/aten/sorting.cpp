// Order: sort, argsort, msort, topk, kthvalue, and lookups in sorted lists: searchsorted, bucketize, isin.
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/copying.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/index/search.h"
#include "kernel/cpu/index/slices.h"
#include "kernel/cpu/index/sort.h"
#include "op/gradient/formulas.h"
#include "op/gradient/reduction_formulas.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

using TwoMetas = std::array<Meta, 2>;

Meta as_indices(Meta m) {
  m.dtype = DType::int64;
  return m;
}
SymInt length_along(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? SymInt(1) : t.sym_sizes()[static_cast<size_t>(dim)];
}

// ---- sort -----------------------------------------------------------------------------------------------------------
TwoMetas sort_rule(const Tensor& self, int64_t dim, bool) {
  wrap_dim(dim, self.dim(), "sort");
  kernel::check_sortable("sort", self.dtype());
  const Meta m = rule::preserved(self);
  return {m, as_indices(m)};
}
void sort_kernel(const Tensor& self, int64_t dim, bool descending, const Tensor& values, const Tensor& indices) {
  kernel::sort(self, wrap_dim(dim, self.dim(), "sort"), descending, false, values, indices);
}
TwoMetas sort_stable_rule(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  return sort_rule(self, dim, descending);
}
void sort_stable_kernel(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending, const Tensor& values,
                        const Tensor& indices) {
  kernel::sort(self, wrap_dim(dim, self.dim(), "sort"), descending, stable.value_or(false), values, indices);
}

// ---- topk, kthvalue -------------------------------------------------------------------------------------------------
TwoMetas topk_rule(const Tensor& self, SymInt k, int64_t dim, bool, bool) {
  dim = wrap_dim(dim, self.dim(), "topk");
  if (self.dtype() == DType::bool_) throw UserError(ErrorKind::unsupported_operator, "topk: not implemented for 'bool'");
  kernel::check_sortable("topk", self.dtype());
  const SymInt n = length_along(self, dim);
  if (!check(sym_and(k >= 0, k <= n)))
    throw UserError("topk: selected index k out of range: k is " + k.str() + ", dimension " + std::to_string(dim) +
                    " has size " + n.str());
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  if (self.dim() > 0) sizes[static_cast<size_t>(dim)] = k;
  const Meta m = rule::contiguous(sizes, self.dtype(), self.device());
  return {m, as_indices(m)};
}
void topk_kernel(const Tensor& self, SymInt k, int64_t dim, bool largest, bool sorted, const Tensor& values,
                 const Tensor& indices) {
  if (self.dim() == 0) {
    kernel::copy(self, values);
    kernel::fill(indices, 0);
    return;
  }
  kernel::topk(self, k.as_int(), wrap_dim(dim, self.dim(), "topk"), largest, sorted, values, indices);
}

TwoMetas kthvalue_rule(const Tensor& self, SymInt k, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim(), "kthvalue");
  if (self.dtype() == DType::bool_ && self.dim() > 0 && !guard_or(self.sym_numel() == 0, false))
    throw UserError(ErrorKind::unsupported_operator, "kthvalue: not implemented for 'bool'");
  kernel::check_sortable("kthvalue", self.dtype());
  const SymInt n = length_along(self, dim);
  if (guard_or(self.sym_numel() == 0, false) && guard_or(n == 0, false))
    throw UserError("kthvalue: Expected reduction dim " + std::to_string(dim) + " to have non-zero size");
  if (!check(sym_and(k >= 1, k <= n)))
    throw UserError("kthvalue: selected number k out of range for dimension " + std::to_string(dim) + ": k is " + k.str() +
                    ", the size is " + n.str());
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end());
  if (self.dim() > 0) {
    if (keepdim)
      sizes[static_cast<size_t>(dim)] = 1;
    else
      sizes.erase(sizes.begin() + dim);
  }
  const Meta m = rule::contiguous(sizes, self.dtype(), self.device());
  return {m, as_indices(m)};
}
void kthvalue_kernel(const Tensor& self, SymInt k, int64_t dim, bool keepdim, const Tensor& values, const Tensor& indices) {
  dim = wrap_dim(dim, self.dim(), "kthvalue");
  const bool removed = !keepdim && self.dim() > 0;
  const auto seen = [&](const TensorBase& t) { return removed ? kernel::with_reduced_dim(t, dim) : t; };
  kernel::kthvalue(self, k.as_int(), dim, seen(values), seen(indices));
}

// ---- searchsorted, bucketize ------------------------------------------------------------------------------------------
bool to_the_right(bool right, std::optional<std::string_view> side) {
  if (!side) return right;
  if (*side != "left" && *side != "right")
    throw UserError("searchsorted: side can only be 'left' or 'right' but got " + std::string(*side));
  if (*side == "left" && right)
    throw UserError("searchsorted: side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}
void check_searchable(const char* op, const Tensor& boundaries, const Tensor& values) {
  const DType d = result_type(boundaries, values);
  if (guard_or(values.sym_numel() == 0, false)) return;
  if (d == DType::bool_ || is_complex(d) || is_float8(d))
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op) + ": not implemented for '" + std::string(name(d)) + "'");
}
Meta searchsorted_rule(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                       std::optional<std::string_view> side, const Tensor& sorter) {
  to_the_right(right, side);
  check_searchable("searchsorted", sorted_sequence, self);
  const SymIntList lines = sorted_sequence.sym_sizes();
  if (self.dim() == 0 && sorted_sequence.dim() != 1)
    throw UserError(
        "searchsorted: input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
        "of sizes " +
        str(lines));
  if (sorted_sequence.dim() == 0)
    throw UserError("searchsorted: boundaries tensor should have positive dimension, but got 0 dimension");
  if (sorted_sequence.dim() != 1) {
    bool match = sorted_sequence.dim() == self.dim();
    for (size_t d = 0; match && d + 1 < lines.size(); ++d) match = check(lines[d] == self.sym_sizes()[d]);
    if (!match)
      throw UserError(
          "searchsorted: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
          "value tensor must match, but we got " +
          str(lines) + " and " + str(self.sym_sizes()));
  }
  if (sorter.defined()) {
    bool match = sorter.dim() == sorted_sequence.dim();
    for (size_t d = 0; match && d < lines.size(); ++d) match = check(lines[d] == sorter.sym_sizes()[d]);
    if (!match)
      throw UserError("searchsorted: boundary and sorter must have the same size, but got boundary tensor " + str(lines) +
                      " and sorter tensor " + str(sorter.sym_sizes()));
    if (sorter.dtype() != DType::int64)
      throw UserError("searchsorted: sorter must be a tensor of long dtype but got dtype " +
                      std::string(name(sorter.dtype())));
  }
  return rule::contiguous(self.sym_sizes(), out_int32 ? DType::int32 : DType::int64, self.device());
}
void searchsorted_kernel(const Tensor& sorted_sequence, const Tensor& self, bool, bool right,
                         std::optional<std::string_view> side, const Tensor& sorter, const Tensor& out) {
  kernel::searchsorted(sorted_sequence, self, sorter, to_the_right(right, side), result_type(sorted_sequence, self), out);
}
Meta searchsorted_scalar_rule(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                              std::optional<std::string_view> side, const Tensor& sorter) {
  return searchsorted_rule(sorted_sequence, wrapped_scalar(self), out_int32, right, side, sorter);
}
void searchsorted_scalar_kernel(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                                std::optional<std::string_view> side, const Tensor& sorter, const Tensor& out) {
  searchsorted_kernel(sorted_sequence, wrapped_scalar(self), out_int32, right, side, sorter, out);
}
Meta bucketize_rule(const Tensor& self, const Tensor& boundaries, bool out_int32, bool) {
  if (boundaries.dim() != 1)
    throw UserError("bucketize: boundaries tensor must be 1 dimension, but got dim(" + std::to_string(boundaries.dim()) +
                    ")");
  check_searchable("bucketize", boundaries, self);
  return rule::contiguous(self.sym_sizes(), out_int32 ? DType::int32 : DType::int64, self.device());
}
void bucketize_kernel(const Tensor& self, const Tensor& boundaries, bool, bool right, const Tensor& out) {
  kernel::searchsorted(boundaries, self, Tensor(), right, result_type(boundaries, self), out);
}

// ---- isin -------------------------------------------------------------------------------------------------------------
DType isin_type(const Tensor& elements, const Tensor& test_elements) { return result_type(elements, test_elements); }
Meta isin_rule(const Tensor& elements, const Tensor& test_elements, bool, bool) {
  for (const Tensor* t : {&elements, &test_elements})
    if (t->dtype() == DType::bool_ || is_complex(t->dtype()))
      throw UserError(ErrorKind::unsupported_operator,
                      "isin: Unsupported input type encountered: " + std::string(name(t->dtype())));
  return rule::contiguous(elements.sym_sizes(), DType::bool_, elements.device());
}
void isin_kernel(const Tensor& elements, const Tensor& test_elements, bool, bool invert, const Tensor& out) {
  kernel::isin(elements, test_elements, isin_type(elements, test_elements), invert, out);
}

}  // namespace

void register_sorting(Library& aten);
void register_sorting(Library& aten) {
  aten.def("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .compute(sort_rule, sort_kernel)
      .out("sort.values(values, indices)")
      .tags(Tag::core)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, true); });
  aten.def("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .compute(sort_stable_rule, sort_stable_kernel)
      .out("sort.values_stable(values, indices)")
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, true); });
  aten.def("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
      .composite([](const Tensor& self, int64_t dim, bool descending) { return std::get<1>(sort(self, dim, descending)); });
  aten.def("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
      .composite([](const Tensor& self, bool stable, int64_t dim, bool descending) {
        return std::get<1>(sort(self, std::optional<bool>(stable), dim, descending));
      })
      .out("argsort.stable_out");
  aten.def("msort(Tensor self) -> Tensor")
      .composite([](const Tensor& self) { return std::get<0>(sort(self, 0, false)); })
      .out("msort.out");
  aten.def("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
      .compute(topk_rule, topk_kernel)
      .out("topk.values(values, indices)")
      .tags(Tag::core)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, true); });
  aten.def("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .compute(kthvalue_rule, kthvalue_kernel)
      .out("kthvalue.values(values, indices)")
      .tags(Tag::unshared_out)
      .gradient("self", "result1", [](const Gradients& g) { return gradient::selected_backward(g, g.flag("keepdim")); });
  aten.def(
          "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
          "side=None, Tensor? sorter=None) -> Tensor")
      .compute(searchsorted_rule, searchsorted_kernel)
      .out("searchsorted.Tensor_out")
      .no_gradient();
  aten.def(
          "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
          "side=None, Tensor? sorter=None) -> Tensor")
      .compute(searchsorted_scalar_rule, searchsorted_scalar_kernel)
      .out("searchsorted.Scalar_out")
      .no_gradient();
  aten.def("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
      .compute(bucketize_rule, bucketize_kernel)
      .out("bucketize.Tensor_out")
      .no_gradient();
  aten.def("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
      .compute([](const Scalar& self, const Tensor& boundaries, bool out_int32,
                  bool right) { return bucketize_rule(wrapped_scalar(self), boundaries, out_int32, right); },
               [](const Scalar& self, const Tensor& boundaries, bool out_int32, bool right, const Tensor& out) {
                 bucketize_kernel(wrapped_scalar(self), boundaries, out_int32, right, out);
               })
      .out("bucketize.Scalar_out")
      .tags(Tag::dense_out)
      .no_gradient();
  aten.def(
          "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
          "Tensor")
      .compute(isin_rule, isin_kernel)
      .out("isin.Tensor_Tensor_out")
      .no_gradient();
  aten.def(
          "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
          "Tensor")
      .compute([](const Tensor& elements, const Scalar& test, bool unique,
                  bool invert) { return isin_rule(elements, wrapped_scalar(test), unique, invert); },
               [](const Tensor& elements, const Scalar& test, bool unique, bool invert, const Tensor& out) {
                 isin_kernel(elements, wrapped_scalar(test), unique, invert, out);
               })
      .out("isin.Tensor_Scalar_out")
      .no_gradient();
  aten.def(
          "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
          "Tensor")
      .compute([](const Scalar& element, const Tensor& tests, bool unique,
                  bool invert) { return isin_rule(wrapped_scalar(element), tests, unique, invert); },
               [](const Scalar& element, const Tensor& tests, bool unique, bool invert, const Tensor& out) {
                 isin_kernel(wrapped_scalar(element), tests, unique, invert, out);
               })
      .out("isin.Scalar_Tensor_out")
      .no_gradient();
}

}  // namespace calque
