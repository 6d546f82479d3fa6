// Selection and replacement by index tensors: index, index_put, index_select, index_add, index_fill, index_copy,
// index_reduce, take, put, take_along_dim.
#include "op/gradient/indexing.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/index/index.h"
#include "kernel/cpu/index/scatter.h"
#include "op/gradient/formulas.h"
#include "op/gradient/products.h"
#include "op/gradient/views.h"
#include "op/rule/indexing.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Put;
using kernel::Selection;

// ---- index ----------------------------------------------------------------------------------------------------------
Tensor index_fake(const Tensor& self, TensorList indices) {
  const rule::Indexed x = rule::lay_indices("index", self, indices);
  return make_tensor(Meta{x.sizes, rule::selection_strides(x), self.dtype(), self.device()}, true);
}
Tensor index_kernel(const Tensor& self, TensorList indices) {
  const rule::Indexed x = rule::lay_indices("index", self, indices);
  Tensor out = make_tensor(Meta{x.sizes, rule::selection_strides(x), self.dtype(), self.device()});
  const auto tensors = pointers(x.tensors);
  kernel::select_elements(x.self, Selection{"index", x.first, tensors, rule::plain(x.index_sizes)}, out);
  return out;
}

// ---- index_put ------------------------------------------------------------------------------------------------------
Meta index_put_rule(const Tensor& self, TensorList indices, const Tensor& values, bool) {
  rule::check_indices("index_put", self, indices);
  if (self.dtype() != values.dtype())
    throw UserError("index_put: requires the source and destination dtypes match, got " + std::string(name(self.dtype())) +
                    " for the destination and " + std::string(name(values.dtype())) + " for the source");
  return rule::preserved(self);
}
void index_put_kernel(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, const Tensor& out) {
  if (!out.is_same(self))
    kernel::copy(self, out);
  else {
    rule::check_no_overlap("index_put_", out, values);
    for (const Tensor& t : indices)
      if (t.defined()) rule::check_no_overlap("index_put_", out, t);
  }
  const rule::Indexed x = rule::lay_indices("index_put", out, indices);
  const auto tensors = pointers(x.tensors);
  kernel::put_elements(x.self, Selection{"index_put", x.first, tensors, rule::plain(x.index_sizes)}, values,
                       accumulate ? Put::add : Put::assign);
}
Meta index_put_impl_rule(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool) {
  return index_put_rule(self, indices, values, accumulate);
}
void index_put_impl_kernel(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool,
                           const Tensor& out) {
  index_put_kernel(self, indices, values, accumulate, out);
}

// ---- one index vector along one dimension -----------------------------------------------------------------------------
void check_index_dtype(const char* op, const Tensor& index, bool int32_too) {
  if (index.dtype() == DType::int64 || (int32_too && index.dtype() == DType::int32)) return;
  throw UserError(std::string(op) + ": Expected dtype " + (int32_too ? "int32/int64" : "int64") + " for index, found " +
                  std::string(name(index.dtype())));
}
void check_vector(const char* op, const Tensor& index) {
  if (index.dim() > 1)
    throw UserError(std::string(op) + ": Index is supposed to be a vector, but got sizes " + str(index.sym_sizes()));
}
// A 0-d tensor seen as one of a single element.
Tensor at_least_1d(const Tensor& t) { return t.dim() ? t : Tensor(make_view(t, {1}, {1}, t.sym_storage_offset())); }

// The selection of a vector of indices along one dimension.
struct Along {
  Along(const char* op, int64_t dim, const Tensor& index, bool wraps)
      : tensor_(at_least_1d(index)), size_(tensor_.numel()), selection{op, dim, {&along_, 1}, IntList(&size_, 1), wraps} {}
  Along(const Along&) = delete;
  Along& operator=(const Along&) = delete;

 private:
  Tensor tensor_;
  const TensorBase* along_ = &tensor_;
  int64_t size_;

 public:
  Selection selection;
};

Meta index_select_rule(const Tensor& self, int64_t dim, const Tensor& index) {
  check_vector("index_select", index);
  check_index_dtype("index_select", index, true);
  dim = wrap_dim(dim, self.dim(), "index_select");
  Meta m = rule::contiguous(self);
  const SymInt n = index.sym_numel();
  if (self.dim() == 0) {
    if (!check(n == 1)) throw UserError("index_select: Index to scalar can have only 1 value, got " + n.str() + " value(s)");
    return m;
  }
  m.sizes[static_cast<size_t>(dim)] = n;
  m.strides = contiguous_strides(m.sizes);
  return m;
}
void index_select_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Along along("index_select", wrap_dim(dim, self.dim(), "index_select"), index, false);
  kernel::select_elements(at_least_1d(self), along.selection, at_least_1d(out));
}

// What index_add, index_copy and index_reduce ask of their arguments. They differ in what they ask of symbolic sizes.
enum class Asks { nothing, length, everything };
void check_source(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Asks asks) {
  const auto differ = [&](SymInt a, SymInt b, bool ask) { return ask ? !check(a == b) : rule::known_different(a, b); };
  const auto mismatch = [&] {
    return UserError(std::string(op) +
                     ": source tensor shape must match self tensor shape, excluding the specified dimension " +
                     std::to_string(dim) + "; found self of sizes " + str(self.sym_sizes()) + " and source of sizes " +
                     str(source.sym_sizes()));
  };
  check_vector(op, index);
  if (self.dtype() != source.dtype())
    throw UserError(std::string(op) + ": self (" + std::string(name(self.dtype())) + ") and source (" +
                    std::string(name(source.dtype())) + ") must have the same scalar type");
  const SymInt n = index.sym_numel();
  if (source.dim() == 0) {
    if (differ(n, 1, asks != Asks::nothing))
      throw UserError(std::string(op) + ": When source is scalar, index should have one element (got " + n.str() + ")");
    // index_copy takes a number as the one element of a vector.
    if (self.dim() > (asks == Asks::everything ? 1 : 0)) throw mismatch();
    return;
  }
  if (source.dim() != self.dim() && (self.dim() != 0 || asks != Asks::everything)) throw mismatch();
  const SymInt length = source.sym_sizes()[source.dim() == 1 ? 0 : static_cast<size_t>(dim)];
  if (differ(n, length, asks != Asks::nothing))
    throw UserError(std::string(op) + ": Number of indices (" + n.str() + ") should be equal to source.size(dim): (" +
                    length.str() + "), for dim: " + std::to_string(dim));
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d)
    if (static_cast<int64_t>(d) != dim && differ(self.sym_sizes()[d], source.sym_sizes()[d], asks == Asks::everything))
      throw mismatch();
}
// Writes go to a copy of self unless it is the output already.
void start_from(const char* op, const Tensor& self, const Tensor& out, std::initializer_list<const Tensor*> inputs) {
  if (!out.is_same(self)) {
    kernel::copy(self, out);
    return;
  }
  for (const Tensor* t : inputs) rule::check_no_overlap(op, out, *t);
}

Meta index_add_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  dim = wrap_dim(dim, self.dim(), "index_add");
  check_index_dtype("index_add", index, true);
  check_source("index_add", self, dim, index, source, Asks::length);
  if (alpha.is_boolean() && self.dtype() != DType::bool_)
    throw UserError("index_add: Boolean alpha only supported for Boolean results, found dtype " +
                    std::string(name(self.dtype())));
  return rule::contiguous(self);
}
void index_add_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha,
                      const Tensor& out) {
  start_from("index_add_", self, out, {&index, &source});
  if (out.numel() == 0 && out.dim() > 1) return;  // as in ATen, the indices are not looked at
  const Along along("index_add", wrap_dim(dim, self.dim(), "index_add"), index, false);
  kernel::add_elements(at_least_1d(out), along.selection, at_least_1d(source), alpha);
}

Meta index_copy_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  dim = wrap_dim(dim, self.dim(), "index_copy");
  check_index_dtype("index_copy", index, false);
  check_source("index_copy", self, dim, index, source, Asks::everything);
  return rule::contiguous(self);
}
void index_copy_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& out) {
  start_from("index_copy_", self, out, {&index, &source});
  const Along along("index_copy", wrap_dim(dim, self.dim(), "index_copy"), index, false);
  kernel::put_elements(at_least_1d(out), along.selection, at_least_1d(source), Put::assign);
}

kernel::ScatterReduction index_reduction(std::string_view reduce) {
  if (reduce == "prod") return kernel::ScatterReduction::prod;
  if (reduce == "mean") return kernel::ScatterReduction::mean;
  if (reduce == "amax") return kernel::ScatterReduction::amax;
  if (reduce == "amin") return kernel::ScatterReduction::amin;
  throw UserError("index_reduce: reduce argument must be either prod, mean, amax or amin, got " + std::string(reduce));
}
Meta index_reduce_rule(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                       bool) {
  dim = wrap_dim(dim, self.dim(), "index_reduce");
  index_reduction(reduce);
  check_index_dtype("index_reduce", index, true);
  check_source("index_reduce", self, dim, index, source, Asks::nothing);
  return rule::contiguous(self);
}
void index_reduce_kernel(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                         bool include_self, const Tensor& out) {
  start_from("index_reduce_", self, out, {&index, &source});
  kernel::index_reduce(at_least_1d(out), wrap_dim(dim, self.dim(), "index_reduce"), at_least_1d(index), at_least_1d(source),
                       index_reduction(reduce), include_self);
}

template <class V>
Meta index_fill_rule(const Tensor& self, int64_t dim, const Tensor& index, const V& value) {
  wrap_dim(dim, self.dim(), "index_fill");
  check_index_dtype("index_fill", index, false);
  check_vector("index_fill", index);
  if constexpr (std::is_same_v<V, Tensor>) {
    if (value.dim() != 0)
      throw UserError("index_fill: only supports a 0-dimensional value tensor, but got tensor with " +
                      std::to_string(value.dim()) + " dimension(s)");
  } else if (value.is_complex() && !is_complex(self.dtype())) {
    throw UserError("index_fill: Converting complex Scalar to non-complex type is not supported");
  }
  return rule::preserved(self);
}
template <class V>
void index_fill_kernel(const Tensor& self, int64_t dim, const Tensor& index, const V& value, const Tensor& out) {
  start_from("index_fill_", self, out, {&index});
  const Tensor one = make_tensor(IntList(), self.dtype());
  if constexpr (std::is_same_v<V, Tensor>)
    kernel::copy(value, one);
  else
    kernel::fill(one, value);
  const Along along("index_fill", wrap_dim(dim, self.dim(), "index_fill"), index, true);
  kernel::put_elements(at_least_1d(out), along.selection, one, Put::assign);
}

// ---- the tensor as one long dimension -----------------------------------------------------------------------------------
void check_flat(const char* op, const Tensor& self, const Tensor& index) {
  if (index.dtype() != DType::int64)
    throw UserError(std::string(op) + ": Expected a long tensor for index, but got " + std::string(name(index.dtype())));
  if (guard_or(self.sym_numel() == 0, false) && !guard_or(index.sym_numel() == 0, true))
    throw UserError(std::string(op) + ": tried to take from an empty tensor of sizes " + str(self.sym_sizes()));
}
Meta take_rule(const Tensor& self, const Tensor& index) {
  check_flat("take", self, index);
  return rule::contiguous(index.sym_sizes(), self.dtype(), self.device());
}
void take_kernel(const Tensor& self, const Tensor& index, const Tensor& out) {
  const TensorBase* const along[] = {&index};
  kernel::select_elements(kernel::flattened(self), Selection{"take", 0, {along, 1}, index.sizes()}, out);
}
Meta put_rule(const Tensor& self, const Tensor& index, const Tensor& source, bool) {
  check_flat("put", self, index);
  if (self.dtype() != source.dtype())
    throw UserError("put: self and source expected to have the same dtype, but got self.dtype = " +
                    std::string(name(self.dtype())) + " and source.dtype = " + std::string(name(source.dtype())));
  if (rule::known_different(index.sym_numel(), source.sym_numel()))
    throw UserError("put: Expected source and index to have the same number of elements, but got source.numel() = " +
                    source.sym_numel().str() + ", index.numel() = " + index.sym_numel().str());
  return rule::preserved(self);
}
void put_kernel(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate, const Tensor& out) {
  start_from("put_", self, out, {&index, &source});
  const Tensor flat = kernel::flattened(out);
  const Tensor where = kernel::flattened(index);
  const TensorBase* const along[] = {&where};
  kernel::put_elements(flat, Selection{"put", 0, {along, 1}, where.sizes()}, kernel::flattened(source),
                       accumulate ? Put::add : Put::assign);
  if (flat.storage().get() != out.storage().get())
    kernel::copy(
        make_view(flat, SymInts(out.sym_sizes().begin(), out.sym_sizes().end()), contiguous_strides(out.sym_sizes()), 0),
        out);
}

Tensor broadcast_except(const Tensor& t, int64_t dim, const SymInts& sizes) {
  SymInts to = sizes;
  to[static_cast<size_t>(dim)] = t.sym_sizes()[static_cast<size_t>(dim)];
  return expand(t, to);
}
Tensor take_along_dim_body(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (dim && self.dim() == 0)
    throw UserError("take_along_dim: Dimension specified as " + std::to_string(*dim) + " but tensor has no dimensions");
  if (indices.dtype() != DType::int64)
    throw UserError("take_along_dim: dtype of indices should be Long but got " + std::string(name(indices.dtype())));
  if (!dim) {
    const Tensor flat = view(self, {-1});
    return gather(flat, 0, view(indices, {-1}));
  }
  if (self.dim() != indices.dim())
    throw UserError("take_along_dim: input and indices should have the same number of dimensions, but got " +
                    std::to_string(self.dim()) + " dimensions for input, and " + std::to_string(indices.dim()) +
                    " dimensions for indices");
  const int64_t d = wrap_dim(*dim, self.dim(), "take_along_dim");
  if (self.dim() == 0) return gather(self, d, indices);
  SymInts own(self.sym_sizes().begin(), self.sym_sizes().end());
  own[static_cast<size_t>(d)] = indices.sym_sizes()[static_cast<size_t>(d)];
  const SymInts sizes = broadcast_sizes(own, indices.sym_sizes(), "take_along_dim");
  const Tensor where = broadcast_except(indices, d, sizes);
  const Tensor from = broadcast_except(self, d, sizes);
  return gather(from, d, remainder(where, Scalar(self.sym_sizes()[static_cast<size_t>(d)])));  // negative ones from the end
}

}  // namespace

void register_indexing(Library& aten);
void register_indexing(Library& aten) {
  aten.def("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .own(index_fake, index_kernel)
      .python("torch.ops.aten.index")  // neither torch nor Tensor has it
      .out("index.Tensor_out")
      .tags(Tag::any_device, Tag::core, Tag::allocates_own)
      .gradient("self", "indices", gradient::of_index);
  aten.def("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .own(index_fake, index_kernel)
      .tags(Tag::any_device, Tag::allocates_own)
      .gradient("self", "indices", [](const Gradients& g) {
        const Meta& self = g.meta("self");
        return _unsafe_index_put(g.grad().new_zeros(self.sizes, self.dtype, Layout::strided, self.device), g.list("indices"),
                                 g.grad(), true);
      });
  aten.def("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .compute(index_put_rule, index_put_kernel)
      .in_place("index_put_")
      .out("index_put.out")
      .tags(Tag::any_device, Tag::overlap_ok, Tag::core, Tag::self_in_out, Tag::strided_out, Tag::dense_out)
      .gradient("self", "indices", gradient::of_indexed_self)
      .gradient("values", "indices", [](const Gradients& g) { return index(g.grad(), g.list("indices")); });
  aten.def("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .compute(index_put_rule, index_put_kernel)
      .tags(Tag::any_device, Tag::self_in_out, Tag::strided_out)
      .gradient("self", "indices",
                [](const Gradients& g) {
                  return g.flag("accumulate")
                             ? g.grad()
                             : _unsafe_index_put(g.grad(), g.list("indices"), gradient::zeros_of(g, "values"), false);
                })
      .gradient("values", "indices", [](const Gradients& g) { return _unsafe_index(g.grad(), g.list("indices")); });
  aten.def(
          "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> "
          "Tensor")
      .compute(index_put_impl_rule, index_put_impl_kernel)
      .in_place("_index_put_impl_")
      .out("_index_put_impl.out")
      .tags(Tag::any_device, Tag::self_in_out, Tag::strided_out, Tag::dense_out)
      .gradient("self", "indices", gradient::of_indexed_self)
      .gradient("values", "indices", [](const Gradients& g) { return index(g.grad(), g.list("indices")); });
  aten.def("index_select(Tensor self, int dim, Tensor index) -> Tensor")
      .compute(index_select_rule, index_select_kernel)
      .out("index_select.out")
      .tags(Tag::unshared_out, Tag::core, Tag::strided_out)
      .gradient("self", "index", gradient::of_index_select);
  aten.def("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
      .compute(index_add_rule, index_add_kernel)
      .in_place("index_add_")
      .out("index_add.out")
      .tags(Tag::self_in_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); })
      .gradient("source", "index source",
                [](const Gradients& g) { return gradient::maybe_times(gradient::of_index_source(g), g.scalar("alpha")); });
  aten.def("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
      .tags(Tag::autocast_promote)
      .compute(index_copy_rule, index_copy_kernel)
      .in_place("index_copy_")
      .out("index_copy.out")
      .tags(Tag::self_in_out, Tag::strided_out)
      .gradient("self", "index",
                [](const Gradients& g) { return g.grad().index_fill(g.integer("dim"), g["index"], Scalar(0)); })
      .gradient("source", "index source", gradient::of_index_source);
  aten.def(
          "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
      .compute(index_reduce_rule, index_reduce_kernel)
      .in_place("index_reduce_")
      .out("index_reduce.out")
      .tags(Tag::self_in_out, Tag::strided_out)
      .gradient("self source", "self index source result", gradient::of_index_reduce);
  aten.def("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .compute(index_fill_rule<Scalar>, index_fill_kernel<Scalar>)
      .in_place("index_fill_.int_Scalar")
      .out("index_fill.int_Scalar_out")
      .tags(Tag::overlap_ok, Tag::self_in_out, Tag::strided_out, Tag::dense_out)
      .gradient("self", "index",
                [](const Gradients& g) { return g.grad().index_fill(g.integer("dim"), g["index"], Scalar(0)); });
  aten.def("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
      .compute(index_fill_rule<Tensor>, index_fill_kernel<Tensor>)
      .in_place("index_fill_.int_Tensor")
      .out("index_fill.int_Tensor_out")
      .tags(Tag::overlap_ok, Tag::self_in_out, Tag::strided_out, Tag::dense_out)
      .gradient("self", "index",
                [](const Gradients& g) { return g.grad().index_fill(g.integer("dim"), g["index"], Scalar(0)); })
      .gradient("value", "index", [](const Gradients& g) {
        return g.grad().index_select(g.integer("dim"), std::get<0>(_unique(g["index"], false))).sum();
      });
  aten.def("take(Tensor self, Tensor index) -> Tensor")
      .compute(take_rule, take_kernel)
      .out("take.out")
      .tags(Tag::unshared_out, Tag::strided_out)
      .gradient("self", "self index", gradient::of_take);
  aten.def("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
      .compute(put_rule, put_kernel)
      .in_place("put_")
      .out("put.out")
      .tags(Tag::self_in_out, Tag::strided_out, Tag::dense_out)
      .gradient("self", "index",
                [](const Gradients& g) {
                  return g.flag("accumulate") ? g.grad() : put(g.grad(), g["index"], gradient::zeros_of(g, "source"), false);
                })
      .gradient("source", "index", [](const Gradients& g) { return g.grad().take(g["index"]).reshape(g.sizes("source")); });
  aten.def("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
      .composite(take_along_dim_body)
      .out("take_along_dim.out");
}

}  // namespace calque
