// Indexing, masking and scattering.

#include <cmath>
#include <numeric>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/op/index.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

// index_put along one dimension; a tensor without dimensions counts as having one.
std::vector<Tensor> index_along(int64_t dim, const Tensor& index) {
  std::vector<Tensor> indices(static_cast<size_t>(dim) + 1);
  indices.back() = index;
  return indices;
}

int64_t canonical_dim(int64_t dim, int64_t rank, const char* op) { return wrap_dim(dim, std::max<int64_t>(rank, 1), op); }

bool is_one(const Scalar& s) { return !s.is_symbolic() && (s.is_floating() ? s.to_double() == 1 : s.to_int() == 1); }

Tensor index_add_of(const Tensor& x, int64_t dim, const Tensor& index, Tensor source, const Scalar& alpha, bool in_place) {
  dim = canonical_dim(dim, x.dim(), "index_add");
  const SymInt indices = index.dim() == 1 ? index.sym_size(0) : SymInt(1);
  require((source.dim() > 0 ? source.sym_size(dim) : SymInt(1)) == indices, "index_add",
          "there are not as many indices as slices of the source");
  if (!is_one(alpha)) source = source * alpha;
  const bool no_dims = x.dim() == 0;
  const Tensor target = no_dims ? x.unsqueeze(0) : x;
  if (in_place) {
    index_put_(target, index_along(dim, index), source, true);
    return x;
  }
  const Tensor out = index_put(target, index_along(dim, index), source, true);
  return no_dims ? out.squeeze(0) : contiguous(out);
}

Tensor index_copy_of(const Tensor& x, int64_t dim, Tensor index, const Tensor& source, bool in_place) {
  dim = canonical_dim(dim, x.dim(), "index_copy");
  const auto without = [&](const Tensor& t) {
    SymInts sizes(t.sym_sizes().begin(), t.sym_sizes().end());
    if (!sizes.empty()) sizes.erase(sizes.begin() + dim);
    return sizes;
  };
  if (source.dim() > 0 || x.dim() == 0)
    require(sym_eq(without(x), without(source)), "index_copy", "source and destination have slices of different sizes");
  if (source.dim() != 0)
    require(index.sym_numel() == source.sym_size(dim), "index_copy",
            "there are not as many indices as slices of the source");
  const bool no_dims = x.dim() == 0;
  const Tensor target = no_dims ? x.unsqueeze(0) : x;
  if (index.dim() == 0) index = index.unsqueeze(0);
  if (in_place) {
    index_put_(target, index_along(dim, index), source);
    return x;
  }
  const Tensor out = index_put(target, index_along(dim, index), source);
  return no_dims ? out.squeeze(0) : contiguous(out);
}

Tensor index_fill_of(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value, bool in_place) {
  const bool no_dims = x.dim() == 0;
  const Tensor y = no_dims ? x.unsqueeze(0) : x;
  SymInts shape(y.sym_sizes().begin(), y.sym_sizes().end());
  shape[static_cast<size_t>(wrap_dim(dim, y.dim(), "index_fill"))] = index.sym_numel();
  const Tensor values = expand(value, shape);
  if (in_place) {
    index_copy_(y, dim, index, values);
    return x;
  }
  Tensor out = index_copy(y, dim, index, values);
  if (no_dims) out = clone(out.squeeze(0));
  if (x.dim() > 0 && !guard(sym_eq(out.sym_strides(), x.sym_strides())) && x.is_non_overlapping_and_dense())
    out = call("prims::copy_strided", {out, Argument<SymIntList>::box(x.sym_strides())}).to_tensor();
  return out;
}

Tensor fill_value(const Scalar& value, const Tensor& x) {
  return scalar_tensor(value, x.dtype(), Layout::strided, x.device(), false);
}

Tensor isin_by_comparing(const Tensor& elements, const Tensor& test_elements, bool invert) {
  if (guard(elements.sym_numel() == SymInt(0))) return empty_like(elements, DType::bool_, std::nullopt, std::nullopt, false);
  Tensor found;
  if (test_elements.dim() == 0) {
    found = eq(elements, test_elements);
  } else {
    SymInts shape(elements.sym_sizes().begin(), elements.sym_sizes().end());
    std::vector<int64_t> dims;
    for (int64_t d = 1; d <= test_elements.dim(); ++d) {
      shape.push_back(1);
      dims.push_back(-d);
    }
    found = any_dims(eq(view(elements, shape), test_elements), dims);
  }
  return invert ? bitwise_not(found) : found;
}

Tensor isin_by_sorting(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert) {
  const Tensor flat = flatten(elements);
  const Tensor tests = flatten(test_elements);
  if (assume_unique) {
    const Tensor all = cat(TensorList{flat, tests});
    const auto [sorted, order] = sort(all, std::optional<bool>(true));
    const Tensor later = sorted.index_by({Slice(1, none)});
    Tensor duplicate = eq(later, sorted.index_by({Slice(none, -1)}));
    duplicate = constant_pad_nd(duplicate, SymInts{0, 1}, Scalar(false));
    if (invert) duplicate = logical_not(duplicate);
    Tensor mask = empty_like(duplicate, std::nullopt, std::nullopt, std::nullopt, false);
    mask = index_copy(mask, 0, order, duplicate);
    return reshape(mask.index_by({Slice(0, elements.sym_numel())}), elements.sym_sizes());
  }
  const auto [sorted, order] = sort(tests);
  const Tensor position = searchsorted(sorted, flat);
  const Tensor inside = lt(position, Scalar(sorted.sym_numel()));
  const Tensor safe = where(inside, position, Scalar(0));
  Tensor found = eq(sorted.index_by({safe}), flat);
  if (invert) found = logical_not(found);
  return reshape(found, elements.sym_sizes());
}

Tensor masked_fill_of(const Tensor& a, const Tensor& mask, const Tensor& value) {
  return contiguous(where(mask, converted(value, a.dtype()), a));
}

// aten::_unsafe_masked_index and _unsafe_masked_index_put_accumulate as they decompose.
Tensor masked_index(const Tensor& x, const Tensor& mask, const Tensor& index, const Scalar& fill) {
  const Tensor safe = clamp(index, Scalar(0), Scalar(x.sym_size(0) - SymInt(1)));
  const Tensor found = _unsafe_index(x, TensorList{safe});
  return masked_fill(found, bitwise_not(mask), fill);
}
Tensor masked_index_put_accumulate(const Tensor& x, const Tensor& mask, const Tensor& index, const Tensor& values) {
  if (guard(x.sym_numel() == SymInt(0))) return clone(x);
  const Tensor safe = clamp(index, Scalar(-x.sym_size(0)), Scalar(x.sym_size(0) - SymInt(1)));
  const Tensor counted = masked_fill(values, bitwise_not(mask), Scalar(0));
  return _unsafe_index_put(x, TensorList{safe}, counted, true);
}

}  // namespace

void decompose_indexing(DecompositionBuilder& table) {
  table.add("_unsafe_index.Tensor", [](const Tensor& self, TensorList indices) -> Tensor { return index(self, indices); });
  table.add("_unsafe_index_put",
            [](const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) -> Tensor {
              return index_put(self, indices, values, accumulate);
            });
  table.add("index_add",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) -> Tensor {
              return index_add_of(self, dim, index, source, alpha, false);
            });
  table.add("index_add_",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) -> Tensor {
              return index_add_of(self, dim, index, source, alpha, true);
            });
  table.add("index_copy", [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) -> Tensor {
    return index_copy_of(self, dim, index, source, false);
  });
  table.add("index_copy_", [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) -> Tensor {
    return index_copy_of(self, dim, index, source, true);
  });
  table.add("index_fill.int_Scalar",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) -> Tensor {
              return index_fill_of(self, dim, index, fill_value(value, self), false);
            });
  table.add("index_fill.int_Tensor",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) -> Tensor {
              return index_fill_of(self, dim, index, value, false);
            });
  table.add("index_fill_.int_Scalar",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) -> Tensor {
              return index_fill_of(self, dim, index, fill_value(value, self), true);
            });
  table.add("index_fill_.int_Tensor",
            [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) -> Tensor {
              return index_fill_of(self, dim, index, value, true);
            });
  table.add("isin.Tensor_Tensor",
            [](const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert) -> Tensor {
              // Comparing all with all is cheaper for few; this is where PyTorch draws the line.
              const SymFloat few = SymFloat(10.0) * sym_float_pow(sym_float(elements.sym_numel()), SymFloat(0.145));
              if (guard_or(sym_float(test_elements.sym_numel()) < few, false))
                return isin_by_comparing(elements, test_elements, invert);
              return isin_by_sorting(elements, test_elements, assume_unique, invert);
            });
  table.add("isin.Tensor_Scalar", [](const Tensor& elements, const Scalar& test_element, bool, bool invert) -> Tensor {
    return invert ? ne(elements, test_element) : eq(elements, test_element);
  });
  table.add("isin.Scalar_Tensor",
            [](const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert) -> Tensor {
              return isin(scalar_tensor(element, std::nullopt, std::nullopt, test_elements.device(), false), test_elements,
                          assume_unique, invert);
            });
  table.add("masked_fill.Scalar", [](const Tensor& a, const Tensor& mask, const Scalar& value) -> Tensor {
    return contiguous(where(mask, converted(value, a.dtype()), a));
  });
  table.add("masked_fill.Tensor", [](const Tensor& a, const Tensor& mask, const Tensor& value) -> Tensor {
    return masked_fill_of(a, mask, value);
  });
  table.add("select_scatter", [](const Tensor& self, const Tensor& src, int64_t dim, SymInt index) -> Tensor {
    dim = wrap_dim(dim, self.dim(), "select_scatter");
    SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(dim)] = -1;
    if (guard(index < SymInt(0))) index = index + self.sym_size(dim);
    const Tensor mask = eq(view(arange_on(self, Scalar(self.sym_size(dim))), shape), Scalar(index));
    const Tensor expanded = expand(unsqueeze(src, dim), self.sym_sizes());
    return where(mask, expanded, self);
  });
  table.add("take", [](const Tensor& self, const Tensor& index) -> Tensor {
    const Tensor flat = reshape(self, SymInts{-1});
    // Python's indexing reads an index without dimensions as a number.
    if (index.dim() == 0 && is_integral(index.dtype(), false))
      return select(flat, 0, Value(index.item()).to_sym_int().guard_int());
    return flat[index];
  });
  table.add("tril", [](const Tensor& a, SymInt diagonal) -> Tensor {
    const Tensor columns = arange_on(a, Scalar(a.sym_size(-1))).unsqueeze(-2);
    const Tensor distance = columns - arange_on(a, Scalar(a.sym_size(-2))).unsqueeze(-1);
    return contiguous(masked(le(distance, Scalar(diagonal)), a));
  });
  table.add("triu", [](const Tensor& a, SymInt diagonal) -> Tensor {
    const Tensor columns = arange_on(a, Scalar(a.sym_size(-1))).unsqueeze(-2);
    const Tensor distance = columns - arange_on(a, Scalar(a.sym_size(-2))).unsqueeze(-1);
    return contiguous(masked(ge(distance, Scalar(diagonal)), a));
  });
  table.add("embedding_dense_backward",
            [](const Tensor& grad_output, const Tensor& given, SymInt num_weights, SymInt padding_idx,
               bool scale_grad_by_freq) -> Tensor {
              Tensor grad = converted(grad_output, computation_dtype(grad_output.dtype()));
              const Tensor indices = converted(given, DType::int64);
              const Tensor from_zero = ge(indices, Scalar(0));
              const Tensor valid = bitwise_and(from_zero, lt(indices, Scalar(num_weights)));
              if (scale_grad_by_freq) {
                Tensor counts = new_zeros(indices, SymInts{num_weights}, std::nullopt, std::nullopt, std::nullopt, false);
                const Tensor each = ones_like(indices, std::nullopt, std::nullopt, std::nullopt, false);
                counts = masked_index_put_accumulate(counts, valid, indices, each);
                const Tensor frequency = masked_index(counts, valid, indices, Scalar(1));
                grad = grad / frequency.unsqueeze(-1);
              }
              const Tensor mask = unsqueezed_to(bitwise_and(valid, ne(indices, Scalar(padding_idx))), grad.dim());
              SymInts shape{num_weights};
              for (int64_t d = indices.dim(); d < grad.dim(); ++d) shape.push_back(grad.sym_size(d));
              const Tensor weight = new_zeros(grad, shape, std::nullopt, std::nullopt, std::nullopt, false);
              return converted(masked_index_put_accumulate(weight, mask, indices, grad), grad_output.dtype());
            });
}

}  // namespace calque
