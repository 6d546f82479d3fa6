// Gradients of reductions, scans and selections.

#include <algorithm>

#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/elementwise/masked.h"
#include "op/gradient/formulas.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

Tensor selecting_backward(const Tensor& grad, int64_t dim, const Tensor& indices, SymIntList sizes, bool keepdim) {
  const bool went = !keepdim && !sizes.empty();
  const Tensor from = went ? grad.unsqueeze(dim) : grad, at = went ? indices.unsqueeze(dim) : indices;
  return from.new_zeros(sizes).scatter(dim, at, from);
}

Tensor cummaxmin_backward_body(const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim) {
  if (guard_or(input.sym_numel() == 0, false)) return input;
  return zeros(input.sym_sizes(), grad.dtype(), Layout::strided, grad.device()).scatter_add(dim, indices, grad);
}

// ---- products of all that came before -------------------------------------------------------------------------------
Tensor summed_from_behind(const Tensor& t, int64_t dim) { return t.flip({dim}).cumsum(dim).flip({dim}); }

// Up to the first zero of a row a quotient serves. At it, what comes behind counts up to the second one. Behind that all is flat.
Tensor around_zeros(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output, const Tensor& weighted,
                    const Tensor& is_zero) {
  const Tensor flat = zeros(input.sym_sizes(), grad.dtype(), Layout::strided, grad.device());
  const Tensor passed = is_zero.cumsum(dim);
  const Tensor ahead = passed.eq(Scalar(0));
  const Tensor quotients = summed_from_behind(weighted.masked_fill(ahead.bitwise_not(), Scalar(0.0)), dim).div(input);
  const Tensor out = where(ahead, quotients, flat);
  const Tensor between = passed.eq(Scalar(1));
  const Tensor first = std::get<1>(between.max(dim, true));
  const Tensor at_first = zeros_like(between).scatter_(dim, first, Scalar(1)).logical_and_(between);
  const Tensor behind = between.bitwise_and_(at_first.bitwise_not());
  const Tensor products = input.masked_fill(behind.bitwise_not(), Scalar(1.0)).cumprod(dim);
  const Tensor counted = grad.masked_fill(passed.ne(Scalar(1)), Scalar(0.0));
  const Tensor before = output.gather(dim, gradient::minus(first, Scalar(1)).relu_());
  before.masked_fill_(first.eq(Scalar(0)), Scalar(1.0));
  return where(at_first, products.mul(counted).sum({dim}, true).mul(before), out);
}

// One row of factors at a time left out: differentiable again, wherever zeros are.
Tensor factor_by_factor(const Tensor& grad, const Tensor& input, int64_t dim) {
  const int64_t n = input.sym_size(dim).as_int();
  SymInts one(input.sym_sizes().begin(), input.sym_sizes().end());
  one[static_cast<size_t>(dim)] = 1;
  const Tensor ones_ahead = ones({1}, grad.dtype(), Layout::strided, grad.device()).expand(one);
  TensorVector out;
  for (int64_t k = 0; k < n; ++k) {
    Tensor others = k == 0 ? ones_ahead : input.slice(dim, 0, k).prod(dim, true);
    if (k + 1 < n) {
      const Tensor rest = input.slice(dim, k + 1).cumprod(dim);
      others = cat({others, k == 0 ? rest : others.expand_as(rest).mul(rest)}, dim);
    }
    out.push_back(grad.slice(dim, k).mul(others).sum({dim}));
  }
  return stack(out, dim);
}

Tensor cumprod_backward_body(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output) {
  if (guard_or(input.sym_numel() <= 1, false)) return grad;
  dim = wrap_dim(dim, input.dim(), "cumprod_backward");
  if (guard_or(input.sym_size(dim) == 1, false)) return grad;
  const Tensor weighted = output.mul(grad);
  const Tensor is_zero = input.eq(Scalar(0));
  const bool plain = gradient::has_values(input);
  if (plain && !is_zero.any().item<bool>()) return summed_from_behind(weighted, dim).div(input);
  if (!plain || !grad_enabled()) return around_zeros(grad, input, dim, output, weighted, is_zero);
  return factor_by_factor(grad, input, dim);
}

// ---- masks ----------------------------------------------------------------------------------------------------------
Tensor masked_select_backward_body(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  const SymInts sizes = broadcast_sizes(input.sym_sizes(), mask.sym_sizes(), "masked_select_backward");
  const Tensor flat = zeros_like(input.expand(sizes), {}, {}, {}, {}, MemoryFormat::preserve);
  return gradient::has_values(input) ? flat.masked_scatter_(mask, grad) : flat.masked_scatter(mask, grad);
}

Meta masked_scatter_backward_rule(const Tensor& grad, const Tensor& mask, SymIntList sizes) {
  if (mask.dtype() != DType::bool_)
    throw UserError("masked_scatter_backward: expected a mask of dtype bool, found " + std::string(name(mask.dtype())));
  broadcast_sizes(grad.sym_sizes(), mask.sym_sizes(), "masked_scatter_backward");
  Meta m = grad.meta();
  m.sizes.assign(sizes.begin(), sizes.end());
  m.strides = contiguous_strides(m.sizes);
  return m;
}
// The source's first values went where the mask is set; the others went nowhere.
void masked_scatter_backward_kernel(const Tensor& grad, const Tensor& mask, SymIntList, const Tensor& out) {
  const Tensor taken = grad.masked_select(mask);
  const int64_t n = std::min(taken.numel(), out.numel());
  kernel::fill(out, Scalar(0));
  if (n > 0) kernel::copy(make_view(taken, {n}, {1}, 0), make_view(out, {n}, {1}, 0));
}

}  // namespace

void register_reductions_backward(Library& aten);
void register_reductions_backward(Library& aten) {
  aten.def(
          "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor")
      .composite(selecting_backward);
  aten.def("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor")
      .composite(cummaxmin_backward_body);
  aten.def("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor").composite(cumprod_backward_body);
  aten.def("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor")
      .composite(masked_select_backward_body);
  aten.def("masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor")
      .compute(masked_scatter_backward_rule, masked_scatter_backward_kernel)
      .gradient("grad_output", "mask", [](const Gradients& g) {
        const Meta& m = g.meta("grad_output");
        return zeros(SymIntList(m.sizes), m.dtype, Layout::strided, m.device).masked_scatter(g["mask"], g.grad());
      });
}

}  // namespace calque
