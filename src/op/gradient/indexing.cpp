#include "op/gradient/indexing.h"
#include "op/gradient/formulas.h"

#include <functional>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/where.h"
#include "calque/op/mode.h"
#include "op/gradient/views.h"

namespace calque::gradient {
namespace {

// Whether somebody sees which operators run: then zeros are not written in place.
bool is_watched(const Tensor& grad) { return modes_active() || grad.is_fake(); }

Tensor zeros_like_self(const Gradients& g) {
  const Meta& self = g.meta("self");
  return g.grad().new_zeros(self.sizes, self.dtype, Layout::strided, self.device);
}

}  // namespace

Tensor of_index(const Gradients& g) {
  const Tensor zeros = zeros_like_self(g);
  const TensorVector indices = g.list("indices");
  return is_watched(g.grad()) ? index_put(zeros, indices, g.grad(), true)
                              : _index_put_impl_(zeros, indices, g.grad(), true, true);
}

Tensor of_indexed_self(const Gradients& g) {
  return g.flag("accumulate") ? g.grad() : index_put(g.grad(), g.list("indices"), zeros_of(g, "values"), false);
}

Tensor of_index_select(const Gradients& g) {
  const Tensor zeros = zeros_like_self(g);
  const int64_t dim = g.integer("dim");
  return is_watched(g.grad()) ? index_add(zeros, dim, g["index"], g.grad()) : index_add_(zeros, dim, g["index"], g.grad());
}

Tensor of_gather(const Gradients& g) {
  if (g.flag("sparse_grad"))
    throw UserError(ErrorKind::unsupported_operator, "gather: sparse gradients are not supported; pass sparse_grad=False");
  const Tensor zeros = g.grad().new_zeros(g.sizes("self"));
  const int64_t dim = g.integer("dim");
  return is_watched(g.grad()) ? scatter_add(zeros, dim, g["index"], g.grad())
                              : scatter_add_(zeros, dim, g["index"], g.grad());
}

Tensor of_take(const Gradients& g) {
  const Tensor zeros = zeros_like(g["self"]);
  return is_watched(g.grad()) ? put(zeros, g["index"], g.grad(), true) : put_(zeros, g["index"], g.grad(), true);
}

Tensor of_index_source(const Gradients& g) {
  const SymIntList sizes = g.sizes("source");
  const int64_t dim = g.integer("dim");
  const Tensor index = g["index"];
  return sizes.empty() ? g.grad().index_select(dim, index.squeeze(0)) : g.grad().index_select(dim, index).expand(sizes);
}

// ---- reductions into places ------------------------------------------------------------------------------------------
namespace {

// How scatter_reduce and index_reduce differ: what reads the places that a source goes to, what adds there, what reduces there.
struct Places {
  std::function<Tensor(const Tensor& t)> read;
  std::function<Tensor(const Tensor& self, const Tensor& source)> add;
  std::function<Tensor(const Tensor& self, const Tensor& source)> reduce;
  std::function<Tensor(const Tensor& self)> clear;
};

// Where one zero was multiplied in, its gradient is the product of the others; where there are more, all have none.
TensorVector of_product(const Places& places, const Tensor& grad, const Tensor& self, const Tensor& source,
                        const Tensor& result) {
  const Tensor self_without_zeros = self.masked_fill(self == Scalar(0), Scalar(1));
  const Tensor of_self = grad * places.reduce(self_without_zeros, source) / self_without_zeros;
  const Tensor is_zero = source == Scalar(0);
  const Tensor none = zeros_like(self);
  const Tensor zeros = places.read(places.add(none, is_zero.to(self.dtype())));
  const Tensor only_zero = is_zero.bitwise_and(zeros == Scalar(1));
  const Tensor others = places.reduce(self, source.masked_fill(only_zero, Scalar(1)));
  const Tensor of_source =
      where(only_zero, places.read(grad * others), places.read(grad * result) / source.masked_fill(is_zero, Scalar(1)));
  return {of_self, of_source};
}

TensorVector of_mean(const Places& places, const Tensor& grad, const Tensor& source, bool include_self) {
  Tensor count = places.add(include_self ? ones_like(grad) : zeros_like(grad), ones_like(source));
  count.masked_fill_(count == Scalar(0), Scalar(1));
  return {grad / count, places.read(grad) / places.read(count)};
}

// Shared evenly by all that are the extreme.
TensorVector of_extreme(const Places& places, const Tensor& grad, const Tensor& self, const Tensor& source,
                        const Tensor& result) {
  const Tensor value = places.read(result);
  const Tensor self_is = self == result, source_is = source == value;
  const Tensor share = grad / places.add(self_is.to(self.dtype()), source_is.to(self.dtype()));
  return {self_is * share, source_is * places.read(share)};
}

TensorVector of_reduction(const Places& places, const Gradients& g, const char* source_name) {
  const std::string reduce = g.argument("reduce").to_string();
  const bool include_self = g.flag("include_self");
  const Tensor& grad = g.grad();
  const Tensor self = g["self"], source = g[source_name], result = g["result"];
  TensorVector out;
  if (reduce == "sum")
    out = {grad, places.read(grad)};
  else if (reduce == "prod")
    out = of_product(places, grad, self, source, result);
  else if (reduce == "mean")
    out = of_mean(places, grad, source, include_self);
  else
    out = of_extreme(places, grad, self, source, result);
  if (!include_self) out[0] = places.clear(out[0]);
  return out;
}

}  // namespace

TensorVector of_scatter_reduce(const Gradients& g) {
  const int64_t dim = g.integer("dim");
  const Tensor index = g["index"];
  const std::string reduce = g.argument("reduce").to_string();
  const bool include_self = g.flag("include_self");
  const Places places{[&](const Tensor& t) { return t.gather(dim, index); },
                      [&](const Tensor& self, const Tensor& source) { return self.scatter_add(dim, index, source); },
                      [&](const Tensor& self, const Tensor& source) {
                        return self.scatter_reduce(dim, index, source, reduce, include_self);
                      },
                      [&](const Tensor& self) { return self.scatter(dim, index, Scalar(0)); }};
  return of_reduction(places, g, "src");
}

TensorVector of_index_reduce(const Gradients& g) {
  const int64_t dim = g.integer("dim");
  const Tensor index = g["index"];
  const std::string reduce = g.argument("reduce").to_string();
  const bool include_self = g.flag("include_self");
  const Places places{
      [&](const Tensor& t) { return t.index_select(dim, index); },
      [&](const Tensor& self, const Tensor& source) { return self.index_add(dim, index, source); },
      [&](const Tensor& self, const Tensor& source) { return self.index_reduce(dim, index, source, reduce, include_self); },
      [&](const Tensor& self) { return self.index_fill(dim, index, Scalar(0)); }};
  return of_reduction(places, g, "source");
}

}  // namespace calque::gradient
