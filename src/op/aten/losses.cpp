// Loss functions.
#include <cmath>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/losses_backward.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/where.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/loss/loss.h"
#include "kernel/cpu/reduce/reduce.h"
#include "op/gradient/formulas.h"
#include "op/gradient/loss_formulas.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Loss;
using kernel::Reduction;
enum : int64_t { each = 0, mean = 1, sum = 2 };

Meta one_element(DType dtype, Device device) {
  Meta m;
  m.dtype = dtype;
  m.device = device;
  return m;
}
Meta reduced(const Meta& loss, int64_t reduction) { return reduction == each ? loss : one_element(loss.dtype, loss.device); }

void check_reduction(const char* op, int64_t reduction) {
  if (reduction < each || reduction > sum)
    throw UserError(std::string(op) + ": expected reduction 0 (none), 1 (mean) or 2 (sum), found " +
                    std::to_string(reduction));
}

// Fills `out` from the elementwise loss: itself, its mean or its sum.
template <class F>
void reduce_loss(const Meta& full, int64_t reduction, const Tensor& out, F&& compute) {
  if (reduction == each) return compute(out);
  const Tensor loss = make_tensor(full);
  compute(loss);
  const uint64_t dims = rule::all_dims(loss.dim());
  if (reduction == sum) return kernel::reduce(Reduction::sum, out.dtype(), loss, dims, out);
  kernel::reduce(Reduction::mean, is_reduced_float(out.dtype()) ? DType::float32 : out.dtype(), loss, dims, out);
}

template <Loss fn>
constexpr const char* loss_name = fn == Loss::mse         ? "mse_loss"
                                  : fn == Loss::smooth_l1 ? "smooth_l1_loss"
                                  : fn == Loss::huber     ? "huber_loss"
                                                          : "soft_margin_loss";

template <Loss fn>
Meta full_meta(const Tensor& self, const Tensor& target) {
  const Meta m = rule::binary(loss_name<fn>, self, target);
  if constexpr (fn == Loss::huber || fn == Loss::soft_margin) {  // made like self
    Meta own = m;
    own.dtype = self.dtype();
    if (rule::equal_sizes(m.sizes, self.sym_sizes()))
      own.strides = rule::preserved_strides(self);
    else if (fn == Loss::soft_margin)
      throw UserError("soft_margin_loss: output with shape " + str(self.sym_sizes()) +
                      " doesn't match the broadcast shape " + str(SymIntList(m.sizes)));
    return own;
  }
  return m;
}
template <Loss fn>
Meta loss_rule(const Tensor& self, const Tensor& target, int64_t reduction, double parameter) {
  check_reduction(loss_name<fn>, reduction);
  if (fn == Loss::smooth_l1 && parameter < 0)
    throw UserError("smooth_l1_loss does not support negative values for beta, found " + Scalar(parameter).str());
  if (fn == Loss::huber && parameter <= 0)
    throw UserError("huber_loss does not support non-positive values for delta, found " + Scalar(parameter).str());
  return reduced(full_meta<fn>(self, target), reduction);
}
template <Loss fn>
void loss_kernel(const Tensor& self, const Tensor& target, int64_t reduction, double parameter, const Tensor& out) {
  const Meta full = full_meta<fn>(self, target);
  reduce_loss(full, reduction, out, [&](const Tensor& loss) {
    if constexpr (fn == Loss::soft_margin)
      kernel::copy(self.neg().mul_(target).exp_().log1p_(), loss);  // rounded at each step
    else
      kernel::elementwise_loss(fn, self, target, parameter, loss);
  });
}
template <Loss fn>
Meta backward_rule(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t, double) {
  const Meta both = rule::binary(loss_name<fn>, self, target);
  Meta m;
  m.sizes = broadcast_sizes(both.sizes, grad.sym_sizes(), loss_name<fn>);
  m.strides = contiguous_strides(m.sizes);
  m.dtype = promote_types(both.dtype, grad.dim() ? grad.dtype() : both.dtype);
  m.device = self.device();
  return m;
}
template <Loss fn>
void backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double parameter,
                     const Tensor& out) {
  kernel::elementwise_loss_backward(fn, grad, self, target, parameter,
                                    reduction == mean ? 1.0 / static_cast<double>(self.numel()) : 1.0, out);
}

// The out= forms reduce in out's dtype.
Tensor loss_out(const char* op, const Tensor& loss, int64_t reduction, const Tensor& out) {
  const std::optional<DType> dtype = is_floating(out.dtype()) ? std::optional(out.dtype()) : std::nullopt;
  const Tensor result = reduction == mean ? loss.mean(dtype) : reduction == sum ? loss.sum(dtype) : loss;
  Meta fresh = result.meta();
  if (guard_or(result.sym_numel() == 0, false)) fresh.strides = contiguous_strides(fresh.sizes);
  op_detail::prepare_out(get_operator(op), fresh, out);
  return out.copy_(result, false);
}

// ---- binary cross entropy -----------------------------------------------------------------------------------------
Meta bce_full(const Tensor& self, const Tensor& target) {
  if (self.dtype() != target.dtype())
    throw UserError("binary_cross_entropy: Found dtype " + std::string(name(target.dtype())) + " for target but expected " +
                    std::string(name(self.dtype())));
  rule::binary("binary_cross_entropy", self, target);
  Meta m = self.meta();
  m.strides = rule::preserved_strides(self);
  return m;
}
// The loss has self's sizes. Of a larger target PyTorch computes everything and keeps the first values.
void bce_elements(const Tensor& self, const Tensor& target, const Tensor& loss) {
  Meta all = rule::binary("binary_cross_entropy", self, target);
  if (product(all.sizes).as_int() == loss.numel())
    return kernel::elementwise_loss(Loss::bce, self, target.dim() > self.dim() ? target.view(self.sym_sizes()) : target, 0,
                                    loss);
  all.strides = contiguous_strides(all.sizes);
  const Tensor full = make_tensor(all);
  kernel::elementwise_loss(Loss::bce, self, target, 0, full);
  const SymInts sizes(loss.sym_sizes().begin(), loss.sym_sizes().end());
  kernel::copy(make_view(full, sizes, contiguous_strides(sizes), 0), loss);
}
void check_weight_fits(const char* op, const Meta& loss, const Tensor& weight) {
  if (!weight.defined()) return;
  const SymInts sizes = broadcast_sizes(loss.sizes, weight.sym_sizes(), op);
  bool same = sizes.size() == loss.sizes.size();
  for (size_t i = 0; same && i < sizes.size(); ++i) same = check(sizes[i] == loss.sizes[i]);
  if (!same)
    throw UserError(std::string(op) + ": output with shape " + str(SymIntList(loss.sizes)) +
                    " doesn't match the broadcast shape " + str(SymIntList(sizes)) + " of weight");
}
Meta bce_rule(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  check_reduction("binary_cross_entropy", reduction);
  const Meta full = bce_full(self, target);
  check_weight_fits("binary_cross_entropy", full, weight);
  return reduced(full, reduction);
}
void bce_kernel(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, const Tensor& out) {
  reduce_loss(bce_full(self, target), reduction, out, [&](const Tensor& loss) {
    bce_elements(self, target, loss);
    if (weight.defined()) kernel::binary(kernel::Binary::mul, loss.dtype(), loss, weight, loss);
  });
}

Meta bce_logits_full(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight) {
  const char* op = "binary_cross_entropy_with_logits";
  const DType common = result_type(self, target);
  if (!can_cast(common, target.dtype()) && is_integral(target.dtype()))
    throw UserError(std::string(op) + ": result type " + std::string(name(common)) +
                    " can't be cast to the desired output type " + std::string(name(target.dtype())));
  const Meta both = rule::pointwise(op, common, {&self, &target});
  // The loss is built on the target's shape.
  bool same = both.sizes.size() == target.sym_sizes().size();
  for (size_t i = 0; same && i < both.sizes.size(); ++i) same = check(both.sizes[i] == target.sym_sizes()[i]);
  if (!same)
    throw UserError(std::string(op) + ": output with shape " + str(target.sym_sizes()) +
                    " of target doesn't match the broadcast shape " + str(SymIntList(both.sizes)));
  Meta m = target.meta();
  m.strides = rule::preserved_strides(target);
  if (pos_weight.defined()) check_weight_fits(op, m, pos_weight);
  check_weight_fits(op, m, weight);
  return m;
}
Meta bce_logits_rule(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                     int64_t reduction) {
  check_reduction("binary_cross_entropy_with_logits", reduction);
  return reduced(bce_logits_full(self, target, weight, pos_weight), reduction);
}
void bce_logits_kernel(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                       int64_t reduction, const Tensor& out) {
  reduce_loss(bce_logits_full(self, target, weight, pos_weight), reduction, out,
              [&](const Tensor& loss) { kernel::bce_logits(self, target, weight, pos_weight, loss); });
}

// ---- negative log likelihood --------------------------------------------------------------------------------------
void check_nll(const char* op, const Tensor& self, const Tensor& target, const Tensor& weight, bool two_d) {
  const auto mismatch = [&] {
    return UserError(std::string(op) + ": size mismatch (got input: " + str(self.sym_sizes()) +
                     ", target: " + str(target.sym_sizes()) + ")");
  };
  if (two_d) {
    if (target.dim() != 3)
      throw UserError(
          std::string(op) +
          ": only batches of spatial targets supported (3D tensors) but got targets of size: " + str(target.sym_sizes()));
    if (self.dim() != 4)
      throw UserError(std::string(op) + ": only batches of spatial inputs supported (4D tensors), but got input of size: " +
                      str(self.sym_sizes()));
  } else {
    if (self.dim() < 1 || self.dim() > 2)
      throw UserError(std::string(op) + ": input tensor should be 1D or 2D, found sizes " + str(self.sym_sizes()));
    if (target.dim() > 1)
      throw UserError(std::string(op) + ": 0D or 1D target tensor expected, multi-target not supported, found sizes " +
                      str(target.sym_sizes()));
    const bool unbatched = self.dim() == 1 && target.dim() == 0;
    if (!unbatched && self.dim() == 1 ? !check(target.sym_size(0) == 1)
                                      : !unbatched && !(target.dim() == 1 && check(self.sym_size(0) == target.sym_size(0))))
      throw mismatch();
  }
  if (target.dtype() != DType::int64 && target.dtype() != DType::uint8)
    throw UserError(std::string(op) + ": expected target dtype to be Long or Byte, but got " +
                    std::string(name(target.dtype())));
  const SymInt classes = self.sym_size(self.dim() == 1 ? 0 : 1);
  if (weight.defined() && !(weight.dim() == 1 && check(weight.sym_numel() == classes)))
    throw UserError(std::string(op) + ": weight tensor should be defined either for all " + classes.str() +
                    " classes or no classes but got weight tensor of shape: " + str(weight.sym_sizes()));
}
std::array<Meta, 2> nll_rule(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, bool two_d) {
  check_nll(two_d ? "nll_loss2d_forward" : "nll_loss_forward", self, target, weight, two_d);
  const Meta scalar = one_element(self.dtype(), self.device());
  if (reduction != each || (!two_d && self.dim() == 1)) return {scalar, scalar};
  return {rule::contiguous_like(target, self.dtype()), scalar};
}
kernel::NllShape nll_shape(const Tensor& self, bool two_d) {
  if (self.dim() == 1) return {1, self.size(0), 1};
  return {self.size(0), self.size(1), two_d ? self.size(2) * self.size(3) : 1};
}
Tensor dense(const Tensor& t) {
  if (!t.defined() || t.is_contiguous()) return t;
  const Tensor out = make_tensor(t.sizes(), t.dtype());
  kernel::copy(t, out);
  return out;
}
// What PyTorch's shape rules have no guards for.
void check_nll_values(const char* op, const Tensor& self, const Tensor& target, const Tensor& weight, bool two_d) {
  if (two_d && (self.size(0) != target.size(0) || self.size(2) != target.size(1) || self.size(3) != target.size(2)))
    throw UserError(std::string(op) + ": size mismatch (got input: " + str(self.sym_sizes()) +
                    ", target: " + str(target.sym_sizes()) + ")");
  if (weight.defined() && weight.dtype() != self.dtype())
    throw UserError(std::string(op) + ": expected weight of scalar type " + std::string(name(self.dtype())) + " but found " +
                    std::string(name(weight.dtype())));
}
void nll_kernel(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore_index,
                bool two_d, const Tensor& output, const Tensor& total) {
  check_nll_values(two_d ? "nll_loss2d_forward" : "nll_loss_forward", self, target, weight, two_d);
  // One sample without a batch counts as a sum of one.
  const int64_t r = reduction == each && !two_d && self.dim() == 1 ? int64_t{sum} : reduction;
  kernel::nll_loss(dense(self), dense(target), dense(weight), nll_shape(self, two_d), r, ignore_index.as_int(), output,
                   total);
}
void nll_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                         int64_t reduction, SymInt ignore_index, const Tensor& total, bool two_d, const Tensor& out) {
  const char* op = two_d ? "nll_loss2d_backward" : "nll_loss_backward";
  check_nll_values(op, self, target, weight, two_d);
  if (grad.numel() != (reduction == each ? target.numel() : 1) || total.numel() != 1)
    throw UserError(std::string(op) + ": expected grad_output of sizes " +
                    (reduction == each ? str(target.sym_sizes()) : "[]") + " and one total_weight, found " +
                    str(grad.sym_sizes()) + " and " + str(total.sym_sizes()));
  const int64_t r = reduction == each && !two_d && self.dim() == 1 ? int64_t{sum} : reduction;
  kernel::nll_loss_backward(dense(grad), dense(target), dense(weight), nll_shape(self, two_d), r, ignore_index.as_int(),
                            total, out);
}

Tensor nll2d_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, SymInt ignore_index, const Tensor& total, const Tensor& grad_input) {
  const char* op = "aten::nll_loss2d_backward.grad_input";
  const Tensor result = nll_loss2d_backward(grad, self.is_contiguous() ? self : self.contiguous(), target, weight, reduction,
                                            ignore_index, total);
  if (grad_input.dtype() != result.dtype())
    throw UserError(std::string(op) + ": expected scalar type " + std::string(name(result.dtype())) + " but found " +
                    std::string(name(grad_input.dtype())));
  if (rule::equal_sizes(result.sym_sizes(), grad_input.sym_sizes()) && !grad_input.is_contiguous())
    throw UserError(std::string(op) + ": grad_input must be contiguous, found strides " + str(grad_input.sym_strides()));
  op_detail::prepare_out(get_operator(op), result.meta(), grad_input);
  return grad_input.copy_(result, false);
}

Tensor nll_nd(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore_index) {
  if (self.dim() < 1) throw UserError("nll_loss_nd: Expected 1 or more dimensions (got " + std::to_string(self.dim()) + ")");
  if (self.dim() > 1 && target.dim() > 0 && !check(self.sym_size(0) == target.sym_size(0)))
    throw UserError("nll_loss_nd: Expected input batch_size (" + self.sym_size(0).str() + ") to match target batch_size (" +
                    target.sym_size(0).str() + ").");
  if (self.dim() <= 2) return nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return nll_loss2d(self, target, weight, reduction, ignore_index);
  const SymInt n = self.sym_size(0);
  const SymInt c = self.sym_size(1);
  SymInts out_sizes{n};
  bool fits = target.dim() == self.dim() - 1;
  for (int64_t d = 2; d < self.dim(); ++d) {
    out_sizes.push_back(self.sym_size(d));
    fits = fits && check(target.sym_size(d - 1) == self.sym_size(d));
  }
  if (!fits)
    throw UserError("nll_loss_nd: Expected target size " + str(SymIntList(out_sizes)) + ", got " + str(target.sym_sizes()));
  const Tensor x = self.is_contiguous() ? self : self.contiguous();
  const Tensor t = target.is_contiguous() ? target : target.contiguous();
  const bool has_elements = guard_or(x.sym_numel() > 0, true);
  const Tensor flat = has_elements ? x.view({n, c, 1, -1}) : x.view({n, c, 0, 0});
  const Tensor flat_target = has_elements ? t.view({n, 1, -1}) : t.view({n, 0, 0});
  const Tensor out = nll_loss2d(flat, flat_target, weight, reduction, ignore_index);
  return reduction == each ? out.view(out_sizes) : out;
}

// ---- cross entropy ------------------------------------------------------------------------------------------------
Tensor cross_entropy_of_probabilities(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                                      double smoothing) {
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const SymInt classes = self.sym_size(class_dim);
  if (!is_floating(target.dtype()))
    throw UserError("Expected floating point type for target with class probabilities, got " +
                    std::string(name(target.dtype())));
  if (weight.defined() && !(weight.dim() == 1 && check(weight.sym_numel() == classes)))
    throw UserError("cross_entropy: weight tensor should be defined either for all " + classes.str() +
                    " classes or no classes but got weight tensor of shape: " + str(weight.sym_sizes()));
  const Tensor x = log_softmax(self, class_dim, self.dtype());
  const Tensor t = smoothing > 0
                       ? target.mul(Scalar(1 - smoothing)).add(Scalar(smoothing / static_cast<double>(classes.guard_int())))
                       : target;
  Tensor product = x.mul(t);
  if (weight.defined()) {
    Tensor w = weight;
    if (self.dim() > 1) {
      SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
      shape[1] = weight.sym_size(0);
      w = weight.view(shape);
    }
    product = product.mul(w);
  }
  if (reduction == each) return product.sum(IntList({class_dim}), false, std::nullopt).neg();
  const Tensor total = product.sum().neg();
  if (reduction == sum) return total;
  SymInt count = self.sym_numel();
  if (self.dim() == 0) return total;
  if (guard_or(classes == 0, false)) return total.div(Scalar(0));
  return total.div(Scalar(floor_div(count, classes)));
}

Tensor cross_entropy_smoothed(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                              SymInt ignore_index, double smoothing) {
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const SymInt classes = self.sym_size(class_dim);
  const Tensor x = log_softmax(self, class_dim, self.dtype());
  const Tensor likelihood = nll_loss_nd(x, target, weight, reduction, ignore_index);
  Tensor smooth;
  if (weight.defined()) {
    Tensor w = weight;
    if (self.dim() > 1) {
      SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
      shape[1] = weight.sym_size(0);
      w = weight.view(shape);
    }
    smooth = x.mul(w).sum(IntList({class_dim}), false, std::nullopt).neg();
  } else {
    smooth = x.sum(IntList({class_dim}), false, std::nullopt).neg();
  }
  const Tensor ignored = target.eq(Scalar(ignore_index));
  smooth = smooth.masked_fill_(ignored, Scalar(0.0));
  Tensor loss;
  if (reduction == mean) {
    if (weight.defined()) {
      if (!target.sym_sizes().empty() && guard_or(target.sym_numel() == 0, false))
        loss = smooth.sum().div(smooth.sum());
      else {
        const Tensor classes_used = target.masked_fill(ignored, Scalar(0));
        const Tensor flat = classes_used.dim() == 1 ? classes_used : classes_used.flatten(0, -1);
        const Tensor used = weight.gather(0, flat, false);
        const Tensor shaped = classes_used.dim() == 1 ? used : used.view(classes_used.sym_sizes());
        loss = smooth.sum().div(shaped.masked_fill_(ignored, Scalar(0)).sum());
      }
    } else {
      const Tensor kept = ignored.logical_not();
      loss = smooth.sum().div(kept.sum());
    }
  } else {
    loss = reduction == sum ? smooth.sum() : smooth;
  }
  return likelihood.mul(Scalar(1 - smoothing))
      .add(loss.mul(Scalar(smoothing / static_cast<double>(classes.guard_int()))), Scalar(1));
}

Tensor cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore_index,
                     double smoothing) {
  const SymIntList a = self.sym_sizes();
  const SymIntList b = target.sym_sizes();
  bool same_shape = a.size() == b.size();
  for (size_t i = 0; same_shape && i < a.size(); ++i) same_shape = guard(a[i] == b[i]);
  if (same_shape) {
    if (!guard(ignore_index < 0)) throw UserError("cross_entropy: ignore_index is not supported for floating point target");
    return cross_entropy_of_probabilities(self, target, weight, reduction, smoothing);
  }
  if (smoothing < 0 || smoothing > 1)
    throw UserError("label_smoothing must be between 0.0 and 1.0. Got: " + Scalar(smoothing).str());
  if (smoothing > 0) return cross_entropy_smoothed(self, target, weight, reduction, ignore_index, smoothing);
  return nll_loss_nd(log_softmax(self, self.dim() == 1 ? 0 : 1, self.dtype()), target, weight, reduction, ignore_index);
}

// ---- the composite rest -------------------------------------------------------------------------------------------
Tensor apply(const Tensor& loss, int64_t reduction) {
  return reduction == mean ? loss.mean() : reduction == sum ? loss.sum() : loss;
}

Tensor kl_div_body(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  if (is_complex(self.dtype()) || is_complex(target.dtype()))
    throw UserError("kl_div: inputs must be real numbers, found " + std::string(name(self.dtype())) + " and " +
                    std::string(name(target.dtype())));
  if (is_integral(self.dtype()) || is_integral(target.dtype()))
    throw UserError("kl_div: Integral inputs not supported, found " + std::string(name(self.dtype())) + " and " +
                    std::string(name(target.dtype())));
  if (log_target) {
    const Tensor difference = target.sub(self);
    return apply(target.exp().mul(difference), reduction);
  }
  const Tensor product = target.mul(self);
  return apply(xlogy(target, target).sub(product), reduction);
}
Tensor cosine_embedding(const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
  if (!((target.dim() == 0 && a.dim() == 1) || (target.dim() == 1 && a.dim() == 2)) || a.dim() != b.dim())
    throw UserError(
        "cosine_embedding_loss: expected a 0D target with 1D inputs or a 1D target with 2D inputs, found target " +
        str(target.sym_sizes()) + ", inputs " + str(a.sym_sizes()) + " and " + str(b.sym_sizes()));
  constexpr double eps = 9.999999960041972e-13;
  const int64_t dim = target.dim();
  const auto total = [&](const Tensor& t) { return t.sum(IntList({dim}), false, std::nullopt); };
  const Tensor prod = total(a.mul(b));
  const Tensor first = total(a.mul(a)).add(Scalar(eps));
  const Tensor second = total(b.mul(b)).add(Scalar(eps));
  const Tensor cos = prod.div(first.mul(second).sqrt_());
  const Tensor zeros = zeros_like(cos, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous);
  const Tensor positive = empty_like(cos, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::preserve)
                              .fill_(Scalar(1))
                              .sub_(cos);
  const Tensor negative = cos.sub(Scalar(margin)).clamp_min_(Scalar(0));
  const Tensor when_positive = where(target.eq(Scalar(1)), positive, zeros);
  const Tensor when_negative = where(target.eq(Scalar(-1)), negative, zeros);
  return apply(when_positive.add(when_negative), reduction);
}
Tensor hinge_embedding(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  const Tensor zeros = zeros_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous);
  const Tensor gap = empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::preserve)
                         .fill_(Scalar(margin))
                         .sub_(self)
                         .clamp_min_(Scalar(0));
  const Tensor outer = where(target.ne(Scalar(1)), gap, zeros);
  const Tensor inner = where(target.ne(Scalar(-1)), self, zeros);
  return apply(outer.add(inner), reduction);
}
Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                      double eps, bool swap, int64_t reduction) {
  if (anchor.dim() != positive.dim() || positive.dim() != negative.dim())
    throw UserError(
        "triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the same number of "
        "dimensions, but got: anchor " +
        std::to_string(anchor.dim()) + "D, positive " + std::to_string(positive.dim()) + "D, and negative " +
        std::to_string(negative.dim()) + "D inputs");
  if (margin <= 0)
    throw UserError("triplet_margin_loss: expected margin to be greater than 0, found " + Scalar(margin).str());
  const Tensor near = pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = far.minimum(pairwise_distance(positive, negative, p, eps, false));
  return apply(near.add(Scalar(margin)).sub(far).clamp_min(Scalar(0)), reduction);
}
Tensor poisson_nll(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, int64_t reduction) {
  Tensor loss;
  if (log_input) {
    const Tensor product = target.mul(input);
    loss = input.exp().sub(product);
  } else {
    loss = input.sub(target.mul(input.add(Scalar(eps)).log()));
  }
  if (full) {
    const Tensor half_log = target.mul(Scalar(6.283185307179586)).log().mul(Scalar(0.5));
    const Tensor stirling = target.mul(target.log()).sub(target).add(half_log);
    loss = loss.add_(stirling.masked_fill(target.le(Scalar(1)), Scalar(0)));
  }
  return apply(loss, reduction);
}

}  // namespace

void register_losses(Library& aten);
void register_losses(Library& aten) {
  aten.def("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.mse_loss")
      .compute([](const Tensor& self, const Tensor& target,
                  int64_t reduction) { return loss_rule<Loss::mse>(self, target, reduction, 0); },
               [](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
                 loss_kernel<Loss::mse>(self, target, reduction, 0, out);
               })
      .gradient(
          "self", "self target",
          [](const Gradients& g) { return mse_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction")); })
      .gradient("target", "self target", [](const Gradients& g) {
        return mse_loss_backward(g.grad(), g["target"], g["self"], g.integer("reduction"));
      });
  aten.def("mse_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch._C._nn.mse_loss")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) -> Tensor {
        check_reduction("mse_loss", reduction);
        return loss_out("aten::mse_loss.out", mse_loss(self, target, each), reduction, out);
      })
      .tags(Tag::out, Tag::cast_out);
  aten.def("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
      .compute([](const Tensor& g, const Tensor& self, const Tensor& target,
                  int64_t reduction) { return backward_rule<Loss::mse>(g, self, target, reduction, 0); },
               [](const Tensor& g, const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
                 backward_kernel<Loss::mse>(g, self, target, reduction, 0, out);
               })
      .out("mse_loss_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient(
          "grad_output", "self target",
          [](const Gradients& g) { return mse_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction")); })
      .gradient("self", "grad_output", [](const Gradients& g) { return gradient::mse_twice(g, "self"); })
      .gradient("target", "grad_output", [](const Gradients& g) { return gradient::mse_twice(g, "target").neg(); });
  aten.def("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.smooth_l1_loss")
      .compute(loss_rule<Loss::smooth_l1>, loss_kernel<Loss::smooth_l1>)
      .gradient("self", "self target",
                [](const Gradients& g) {
                  return smooth_l1_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction"), g.number("beta"));
                })
      .gradient("target", "self target", [](const Gradients& g) {
        return smooth_l1_loss_backward(g.grad(), g["target"], g["self"], g.integer("reduction"), g.number("beta"));
      });
  aten.def(
          "smooth_l1_loss.out(Tensor self, Tensor target, int reduction=1, float beta=1.0, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch._C._nn.smooth_l1_loss")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double beta, const Tensor& out) -> Tensor {
        check_reduction("smooth_l1_loss", reduction);
        return loss_out("aten::smooth_l1_loss.out", smooth_l1_loss(self, target, each, beta), reduction, out);
      })
      .tags(Tag::out, Tag::cast_out);
  aten.def("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor")
      .compute(backward_rule<Loss::smooth_l1>, backward_kernel<Loss::smooth_l1>)
      .out("smooth_l1_loss_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_output", "self target",
                [](const Gradients& g) {
                  return smooth_l1_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction"), g.number("beta"));
                })
      .gradient("self", "grad_output self target", gradient::smooth_l1_twice)
      .gradient("target", "grad_output self target", [](const Gradients& g) { return gradient::smooth_l1_twice(g).neg(); });
  aten.def("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.huber_loss")
      .compute(loss_rule<Loss::huber>, loss_kernel<Loss::huber>)
      .gradient("self", "self target",
                [](const Gradients& g) {
                  return huber_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction"), g.number("delta"));
                })
      .gradient("target", "self target", [](const Gradients& g) {
        return huber_loss_backward(g.grad(), g["target"], g["self"], g.integer("reduction"), g.number("delta"));
      });
  aten.def("huber_loss.out(Tensor self, Tensor target, int reduction=1, float delta=1.0, *, Tensor(a!) out) -> Tensor(a!)")
      .python("torch._C._nn.huber_loss")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction, double delta, const Tensor& out) -> Tensor {
        check_reduction("huber_loss", reduction);
        return loss_out("aten::huber_loss.out", huber_loss(self, target, each, delta), reduction, out);
      })
      .tags(Tag::out, Tag::cast_out);
  aten.def("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor")
      .compute(backward_rule<Loss::huber>, backward_kernel<Loss::huber>)
      .gradient("grad_output", "grad_output self target", gradient::huber_twice_given)
      .gradient("self", "grad_output self target", gradient::huber_twice)
      .gradient("target", "grad_output self target", [](const Gradients& g) { return gradient::huber_twice(g).neg(); });
  aten.def(
          "huber_loss_backward.out(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta, *, "
          "Tensor(a!) grad_input) -> Tensor(a!)")
      .composite([](const Tensor& g, const Tensor& self, const Tensor& target, int64_t reduction, double delta,
                    const Tensor& grad_input) -> Tensor {
        const Operator& op = get_operator("aten::huber_loss_backward.out");
        const Tensor result = huber_loss_backward(g, self, target, reduction, delta);
        if (result.dtype() != grad_input.dtype())
          throw UserError(op.name() + ": Found dtype " + std::string(name(grad_input.dtype())) + " but expected " +
                          std::string(name(result.dtype())));
        Meta fresh = rule::binary("huber_loss_backward", self, target);  // where it is resized, it lies like its inputs
        if (!rule::equal_sizes(fresh.sizes, result.sym_sizes())) fresh = result.meta();
        op_detail::prepare_out(op, fresh, grad_input);
        return grad_input.copy_(result, false);
      })
      .tags(Tag::out);
  aten.def("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.soft_margin_loss")
      .compute([](const Tensor& self, const Tensor& target,
                  int64_t reduction) { return loss_rule<Loss::soft_margin>(self, target, reduction, 0); },
               [](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
                 loss_kernel<Loss::soft_margin>(self, target, reduction, 0, out);
               })
      .out("soft_margin_loss.out")
      .gradient("self", "self target", [](const Gradients& g) {
        return soft_margin_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction"));
      });
  aten.def("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.binary_cross_entropy")
      .compute(bce_rule, bce_kernel)
      .out("binary_cross_entropy.out")
      .gradient("self", "self target weight",
                [](const Gradients& g) {
                  return binary_cross_entropy_backward(g.grad(), g["self"], g["target"], g["weight"],
                                                       g.integer("reduction"));
                })
      .gradient("target", "self weight", gradient::bce_target);
  aten.def(
          "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
          "reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .compute(bce_logits_rule, bce_logits_kernel)
      .out("binary_cross_entropy_with_logits.out")
      .tags(Tag::dense_out)
      .gradient("self", "self target weight pos_weight", gradient::bce_logits_self)
      .gradient("target", "self weight pos_weight", gradient::bce_logits_target);
  aten.def(
          "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
          "output, Tensor total_weight)")
      .compute([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                  SymInt) { return nll_rule(self, target, weight, reduction, false); },
               [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore,
                  const Tensor& output,
                  const Tensor& total) { nll_kernel(self, target, weight, reduction, ignore, false, output, total); })
      .gradient("self", "self target weight result1",
                [](const Gradients& g) {
                  return nll_loss_backward(g.grad(), g["self"], g["target"], g["weight"], g.integer("reduction"),
                                           g.sym_int("ignore_index"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def(
          "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
          "output, Tensor total_weight)")
      .compute([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                  SymInt) { return nll_rule(self, target, weight, reduction, true); },
               [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore,
                  const Tensor& output,
                  const Tensor& total) { nll_kernel(self, target, weight, reduction, ignore, true, output, total); })
      .gradient("self", "self target weight result1",
                [](const Gradients& g) {
                  return nll_loss2d_backward(g.grad(), g["self"], g["target"], g["weight"], g.integer("reduction"),
                                             g.sym_int("ignore_index"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def(
          "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
          "ignore_index, Tensor total_weight) -> Tensor")
      .compute(
          [](const Tensor&, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t, SymInt, const Tensor&) {
            check_nll("nll_loss_backward", self, target, weight, false);
            return rule::contiguous_like(self, self.dtype());
          },
          [](const Tensor& g, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
             SymInt ignore, const Tensor& total,
             const Tensor& out) { nll_backward_kernel(g, self, target, weight, reduction, ignore, total, false, out); })
      .out("nll_loss_backward.grad_input(grad_input)")
      .gradient("grad_output", "target weight",
                [](const Gradients& g) {
                  return nll_loss(g.grad(), g["target"], g["weight"], g.integer("reduction"), g.sym_int("ignore_index"));
                })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def(
          "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
          "ignore_index, Tensor total_weight) -> Tensor")
      .compute(
          [](const Tensor&, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t, SymInt, const Tensor&) {
            check_nll("nll_loss2d_backward", self, target, weight, true);
            return rule::contiguous_like(self, self.dtype());
          },
          [](const Tensor& g, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
             SymInt ignore, const Tensor& total, const Tensor& out) {
            Meta made_like_self = self.meta();
            made_like_self.strides = rule::preserved_strides(self);
            if (!make_tensor(made_like_self, true).is_contiguous())
              throw UserError("nll_loss2d_backward: grad_input must be contiguous, found self of strides " +
                              str(self.sym_strides()));
            nll_backward_kernel(g, self, target, weight, reduction, ignore, total, true, out);
          })
      .gradient("grad_output", "target weight",
                [](const Gradients& g) {
                  return nll_loss2d(g.grad(), g["target"], g["weight"], g.integer("reduction"), g.sym_int("ignore_index"));
                })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def(
          "nll_loss2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
          "SymInt ignore_index, Tensor total_weight, *, "
          "Tensor(a!) grad_input) -> Tensor(a!)")
      .composite(nll2d_backward_out)
      .tags(Tag::out, Tag::cast_out);
  aten.def("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.nll_loss")
      .composite(
          [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore) -> Tensor {
            return std::get<0>(nll_loss_forward(self, target, weight, reduction, ignore));
          })
      .out("nll_loss.out");
  aten.def(
          "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.nll_loss2d")
      .composite(
          [](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore) -> Tensor {
            return std::get<0>(nll_loss2d_forward(self, target, weight, reduction, ignore));
          })
      .out("nll_loss2d.out");
  aten.def(
          "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
          "Tensor")
      .python("torch._C._nn.nll_loss_nd")
      .composite(nll_nd);
  aten.def(
          "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
          "float label_smoothing=0.0) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.cross_entropy_loss")
      .composite(cross_entropy);
  aten.def("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.l1_loss")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
        return apply(self.sub(target).abs(), reduction);
      });
  aten.def("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(kl_div_body);
  aten.def("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(cosine_embedding);
  aten.def("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) -> Tensor {
        const Tensor difference = a.sub(b);
        return apply(target.neg().mul(difference).add(Scalar(margin)).clamp_min_(Scalar(0)), reduction);
      });
  aten.def("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(hinge_embedding);
  aten.def(
          "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float "
          "eps=1e-06, bool swap=False, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(triplet_margin);
  aten.def("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(poisson_nll);
}

}  // namespace calque
