#include "op/gradient/views.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/view_gradients.h"
#include "calque/op/library.h"

namespace calque::gradient {

Tensor of_view(const Gradients& g) { return g.grad().reshape(g.sizes("self")); }
Tensor of_same(const Gradients& g) { return g.grad(); }
Tensor of_t(const Gradients& g) { return g.grad().t(); }
Tensor of_transpose(const Gradients& g) { return g.grad().transpose(g.integer("dim0"), g.integer("dim1")); }
Tensor of_unsqueeze(const Gradients& g) { return g.grad().squeeze(g.integer("dim")); }

Tensor of_permute(const Gradients& g) {
  const std::vector<int64_t> dims = g.integers("dims");
  std::vector<int64_t> back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    back[static_cast<size_t>(wrap_dim(dims[i], static_cast<int64_t>(dims.size()), "permute"))] = static_cast<int64_t>(i);
  return g.grad().permute(back);
}

namespace {

bool is_of_size_one(SymInt size) { return guard_or(size == 1, false); }

// What a squeeze of these dimensions took away.
template <class Squeezed>
Tensor unsqueezed(const Gradients& g, Squeezed squeezed) {
  const SymIntList sizes = g.sizes("self");
  Tensor out = g.grad();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (squeezed(static_cast<int64_t>(d)) && is_of_size_one(sizes[d])) out = out.unsqueeze(static_cast<int64_t>(d));
  return out;
}

}  // namespace

Tensor of_squeeze(const Gradients& g) {
  return unsqueezed(g, [](int64_t) { return true; });
}

Tensor of_squeeze_dim(const Gradients& g) {
  const int64_t dim = wrap_dim(g.integer("dim"), g.dim("self"), "squeeze");
  return unsqueezed(g, [dim](int64_t d) { return d == dim; });
}

Tensor of_squeeze_dims(const Gradients& g) {
  std::vector<int64_t> dims = g.integers("dim");
  for (int64_t& d : dims) d = wrap_dim(d, g.dim("self"), "squeeze");
  return unsqueezed(g, [&dims](int64_t d) { return std::count(dims.begin(), dims.end(), d) != 0; });
}

Tensor of_slice(const Gradients& g) {
  const auto bound = [&](const char* name, int64_t missing) {
    return g.argument(name).is_none() ? SymInt(missing) : g.sym_int(name);
  };
  return slice_backward(g.grad(), g.sizes("self"), g.integer("dim"), bound("start", 0),
                        bound("end", std::numeric_limits<int64_t>::max()), g.sym_int("step"));
}

Tensor of_select(const Gradients& g) {
  return select_backward(g.grad(), g.sizes("self"), g.integer("dim"), g.sym_int("index"));
}

Tensor of_diagonal(const Gradients& g) {
  return diagonal_backward(g.grad(), g.sizes("self"), g.integer("offset"), g.integer("dim1"), g.integer("dim2"));
}

Tensor of_unfold(const Gradients& g) {
  return unfold_backward(g.grad(), g.sizes("self"), g.integer("dimension"), g.integer("size"), g.integer("step"));
}

// ---- as_strided -----------------------------------------------------------------------------------------------------
namespace {

struct Geometry {
  SymInts sizes, strides;
  SymInt offset;

  void keep(SymInt size, SymInt stride) {
    sizes.insert(sizes.begin(), size);
    strides.insert(strides.begin(), stride);
  }
  // Might two elements lie in one place?
  bool may_overlap() const {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return guard(strides[a] < strides[b]); });
    SymInt last = 0;
    for (const size_t i : order) {
      if (guard(strides[i] <= last)) return true;
      last += strides[i] * (sizes[i] - 1);
    }
    return false;
  }
  // How much memory it reaches over.
  SymInt extent() const {
    SymInt size = offset + 1;
    for (size_t i = 0; i < sizes.size(); ++i) size += (sizes[i] - 1) * strides[i];
    return size;
  }
};

}  // namespace

// The gradient is added into memory that both the result and the argument are views of, and seen there as the argument is. Where
// several elements of the argument lie in one place they share what comes there.
Tensor of_as_strided(const Gradients& g) {
  Tensor grad = g.grad();
  const Meta& self = g.meta("self");
  const SymInts sizes = g.sym_ints("size"), strides = g.sym_ints("stride");
  const auto nothing = [&] { return grad.new_zeros(self.sizes); };
  Geometry result, argument;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (guard(sizes[i] == 0)) return nothing();
    if (guard(sizes[i] == 1))
      grad = grad.squeeze(static_cast<int64_t>(i));
    else if (guard(strides[i] == 0))
      grad = grad.sum({static_cast<int64_t>(i)}, false);
    else
      result.keep(sizes[i], strides[i]);
  }
  for (size_t i = self.sizes.size(); i-- > 0;) {
    if (guard(self.sizes[i] == 0)) return nothing();
    if (!guard(self.sizes[i] == 1)) argument.keep(self.sizes[i], self.strides[i]);
  }
  argument.offset = g.storage_offset("self");
  result.offset = g.argument("storage_offset").is_none() ? argument.offset : g.sym_int("storage_offset");
  const SymInt shared = sym_min(argument.offset, result.offset);
  argument.offset = argument.offset - shared;
  result.offset = result.offset - shared;

  const bool argument_overlaps = argument.may_overlap(), result_overlaps = result.may_overlap();
  const SymInt memory = sym_max(argument.extent(), result.extent());
  const Tensor storage = grad.new_zeros({memory});
  Tensor places;
  if (argument_overlaps || result_overlaps)
    places = arange(Scalar(0), Scalar(memory), DType::int64, Layout::strided, grad.device());
  if (result_overlaps)
    storage.index_add_(0, places.as_strided(result.sizes, result.strides, result.offset).reshape({-1}), grad.reshape({-1}));
  else
    storage.as_strided(result.sizes, result.strides, result.offset).copy_(grad);
  if (argument_overlaps) {
    const Tensor count = zeros_like(storage);
    const Tensor of_argument = places.as_strided(argument.sizes, argument.strides, argument.offset).reshape({-1});
    count.index_add_(0, of_argument, ones({1}, grad.dtype()).expand(of_argument.sym_sizes()));
    storage.div_(count);  // NaN where the argument does not reach
  }
  return storage.as_strided(self.sizes, self.strides, argument.offset);
}

}  // namespace calque::gradient
