#include "op/gradient/reduction_formulas.h"

#include <cmath>
#include <limits>

#include "calque/op/aten/cat.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions_backward.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "calque/tensor/finfo.h"

namespace calque::gradient {

Tensor sum_backward(const Gradients& g, const Tensor& grad) { return restored(g, grad).expand(g.sizes("self")); }

Tensor mean_backward(const Gradients& g, const Tensor& grad) {
  const std::vector<int64_t> dims = g.integers("dim");
  const SymInt count = dims.empty() ? product(g.sizes("self")) : count_of(g.sizes("self"), dims);
  return over(sum_backward(g, grad), Scalar(count));
}

Tensor var_backward(const Gradients& g, const Tensor& grad) {
  const Tensor self = g["self"];
  const Value& given = g.argument("correction");
  const double correction = given.is_none() ? 1 : given.to_scalar().to_double();
  const auto slope = [&](SymInt count) {
    if (Scalar(count).is_symbolic()) return Scalar(SymFloat(2.0) / (sym_float(count) - SymFloat(correction)));
    return Scalar(2.0 / (static_cast<double>(count.as_int()) - correction));
  };
  if (self.dim() == 0 || g.argument("dim").is_none()) {
    const SymInt count = self.sym_numel();
    if (guard_or(sym_float(count) <= SymFloat(correction), false)) {
      const Tensor same = self.eq(self.mean());
      return grad.mul(where(same, number_like(Scalar(std::numeric_limits<double>::quiet_NaN()), grad),
                            number_like(Scalar(std::numeric_limits<double>::infinity()), grad)));
    }
    const Tensor distance = self.sub(self.mean());
    return times(grad, slope(count)).mul(distance);
  }
  const std::vector<int64_t> dims = g.integers("dim");
  const Tensor kept = self.dim() > 1 ? restored(g, grad) : grad;
  const Tensor distance = self.sub(self.mean(dims, true));
  return times(kept, slope(count_of(self.sym_sizes(), dims))).mul(distance);
}

Tensor std_backward(const Gradients& g, const Tensor& grad, const Tensor& result) {
  const Tensor of_var = grad.div(times(result, Scalar(2)));
  return var_backward(g, of_var.masked_fill_(result.eq(Scalar(0)), Scalar(0)));
}

Tensor shared_evenly(const Gradients& g) {
  const Tensor self = g["self"], result = g["result"];
  if (has_values(self)) {
    const Tensor mask = result.isnan().item<bool>() ? self.isnan() : self.eq(result);
    return g.grad().new_zeros(self.sym_sizes(), self.dtype()).masked_fill_(mask, g.grad().div(mask.sum()));
  }
  const Tensor both_nan = self.isnan().logical_and(result.isnan());
  const Tensor mask = self.eq(result).logical_or_(both_nan);
  return mask.mul(g.grad().div(mask.sum()));
}

namespace {

// A reduction's result in the shape that it has with keepdim.
Tensor reshaped(const Tensor& t, const std::vector<int64_t>& dims, bool keepdim) {
  if (keepdim) return t;
  const size_t rank = static_cast<size_t>(t.dim()) + dims.size();
  SymInts sizes(rank, 0);
  std::vector<bool> went(rank);
  for (const int64_t d : dims) went[static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(rank) : d)] = true;
  int64_t next = 0;
  for (size_t d = 0; d < rank; ++d) sizes[d] = went[d] ? SymInt(1) : t.sym_size(next++);
  return t.reshape(sizes);
}
Tensor shared_by_count(const Tensor& grad, const Tensor& mask, const std::vector<int64_t>& dims) {
  return grad.div(mask.sum(dims, true)).mul(mask);
}

}  // namespace

Tensor extremum_backward(const Gradients& g) {
  const std::vector<int64_t> dims = g.integers("dim");
  const std::vector<int64_t> went = g.dim("self") == 0 ? std::vector<int64_t>() : dims;
  const bool keepdim = g.flag("keepdim");
  const Tensor mask = reshaped(g["result"], went, keepdim).eq(g["self"]);
  return shared_by_count(reshaped(g.grad(), went, keepdim), mask, dims);
}

Tensor aminmax_backward(const Gradients& g) {
  const Tensor self = g["self"];
  std::vector<int64_t> dims = g.integers("dim");
  if (dims.empty())
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  if (self.dim() == 0) dims.clear();
  Tensor out;
  for (size_t i = 0; i < 2; ++i) {
    if (!g.grad(i).defined()) continue;
    const Tensor result = reshaped(g[i == 0 ? "result0" : "result1"], dims, g.flag("keepdim"));
    const Tensor grad = reshaped(g.grad(i), dims, g.flag("keepdim"));
    const Tensor part = shared_by_count(grad, self.eq(result), dims);
    out = out.defined() ? out.add(part) : part;
  }
  return out;
}

// ---- products -------------------------------------------------------------------------------------------------------
namespace {

// The product of all others, from both sides: zeros do no harm.
Tensor product_of_others(const Tensor& grad, const Tensor& input, int64_t dim) {
  if (guard_or(input.sym_numel() == 0, false)) return grad.expand_as(input);
  const SymInt n = input.sym_size(dim);
  if (guard_or(n == 1, false)) return grad;
  SymInts one(input.sym_sizes().begin(), input.sym_sizes().end());
  one[static_cast<size_t>(dim)] = 1;
  const Tensor first = ones(one, grad.dtype(), Layout::strided, grad.device());
  const Tensor before = cat({first, input.narrow(dim, 0, n - 1)}, dim).cumprod(dim);
  const Tensor behind = cat({first, input.narrow(dim, 1, n - 1).flip({dim})}, dim).cumprod(dim).flip({dim});
  return grad.mul(before.mul(behind));
}

}  // namespace

Tensor prod_backward(const Gradients& g) {
  const Tensor input = g["self"].to(g.grad().dtype());
  if (input.dim() == 0) return g.grad();
  const auto in_a_row = [&] { return product_of_others(g.grad(), input.contiguous().view({-1}), 0).view_as(input); };
  if (!has_values(input)) return in_a_row();
  const auto zeros_in = input.eq(Scalar(0)).sum().item<int64_t>();
  if (zeros_in == 0) return g.grad().mul(g["result"].div(input));
  return zeros_in > 1 ? zeros_like(input, {}, {}, {}, {}, MemoryFormat::contiguous) : in_a_row();
}

Tensor prod_dim_backward(const Gradients& g) {
  const Tensor input = g["self"].to(g.grad().dtype());
  if (input.dim() == 0) return g.grad();
  const int64_t dim = wrap_dim(g.integer("dim"), input.dim(), "prod");
  const bool keepdim = g.flag("keepdim");
  const Tensor grad = keepdim ? g.grad() : g.grad().unsqueeze(dim),
               result = keepdim ? g["result"] : g["result"].unsqueeze(dim);
  if (has_values(input) && input.eq(Scalar(0)).sum().item<int64_t>() == 0) return grad.mul(result.div(input));
  return product_of_others(grad, input, dim);
}

Tensor selected_backward(const Gradients& g, bool keepdim) {
  return value_selecting_reduction_backward(g.grad(), g.integer("dim"), g["result1"], g.sizes("self"), keepdim);
}

// ---- norms ----------------------------------------------------------------------------------------------------------
namespace {

// The gradient over norm ** (p - 1), nothing where the norm is zero.
Tensor scaled_by_norm(const Tensor& grad, const Tensor& norm, double p) {
  const Tensor power = norm.pow(Scalar(p - 1));
  return grad.div(power).masked_fill_(norm.eq(Scalar(0)), Scalar(0));
}

}  // namespace

Tensor norm_backward(const Tensor& given, const Tensor& self, double p, const Tensor& result,
                     const std::vector<int64_t>& dims, bool keepdim) {
  if (p == 0) return {};
  std::vector<int64_t> went = dims;
  for (int64_t& d : went) d = d < 0 ? d + self.dim() : d;
  std::sort(went.begin(), went.end());
  const bool is_kept = keepdim || self.dim() == 0;
  const Tensor grad = restored(given, went, is_kept), norm = restored(result, went, is_kept);
  if (p == 1) return self.sgn().mul(grad);
  if (p == 2) return grad.mul(self.div(norm).masked_fill_(norm.eq(Scalar(0)), Scalar(0)));
  if (std::isinf(p)) {
    const Tensor size = self.abs();
    const Tensor mask = size.eq(norm).logical_or(size.isnan());
    const Tensor share = grad.div(mask.sum(dims, true)).mul(mask);
    return self.sgn().mul(share);
  }
  if (p < 1) {
    const Tensor steep = self.abs().pow_(Scalar(p - 1)).masked_fill_(self.eq(Scalar(0)), Scalar(0));
    const Tensor scaled = self.sgn().mul(steep), power = norm.pow(Scalar(1 - p));
    return scaled.mul(grad).mul(power);
  }
  const Tensor power = self.abs().pow_(Scalar(p < 2 ? p - 1 : p - 2));
  const Tensor scaled = (p < 2 ? self.sgn() : self).mul(power);
  return scaled.mul(scaled_by_norm(grad, norm, p));
}

// ---- scans ----------------------------------------------------------------------------------------------------------
// In logarithms, the positive gradients apart from the negative ones.
Tensor logcumsumexp_backward(const Gradients& g) {
  const Tensor& grad = g.grad();
  if (grad.dim() == 0 || guard_or(grad.sym_numel() == 0, false)) return grad;
  const Tensor self = g["self"], result = g["result"];
  const int64_t dim = g.integer("dim");
  const Tensor lowest = number_like(Scalar(lowest_finite(grad.dtype())), grad);
  const Tensor log = grad.abs().log();
  const Tensor positive = where(grad.gt(Scalar(0)), log, lowest), negative = where(grad.lt(Scalar(0)), log, lowest);
  const auto part = [&](const Tensor& t) { return t.sub(result).flip({dim}).logcumsumexp(dim).flip({dim}).add(self).exp(); };
  const Tensor first = part(positive);
  return first.sub(part(negative));
}

}  // namespace calque::gradient
