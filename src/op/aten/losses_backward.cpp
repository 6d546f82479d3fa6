// Gradients of losses and distances.
#include "calque/op/aten/losses_backward.h"

#include "calque/base/error.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/loss/ctc.h"
#include "kernel/cpu/loss/distance.h"
#include "kernel/cpu/loss/loss.h"
#include "kernel/cpu/loss/margin_loss.h"
#include "kernel/cpu/not_implemented.h"
#include "op/gradient/loss_formulas.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

constexpr int64_t by_mean = 1;

Meta like_argument(const Tensor& t) {
  Meta m = t.meta();
  m.strides = rule::preserved_strides(t);
  return m;
}
Meta contiguous_as_argument(const Tensor& t) {
  Meta m = t.meta();
  m.strides = contiguous_strides(m.sizes);
  return m;
}
Tensor dense_or_none(const Tensor& t) { return t.defined() ? t.contiguous() : t; }

// ---- binary cross entropy, soft margin ------------------------------------------------------------------------------
Meta bce_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t) {
  rule::pointwise("binary_cross_entropy_backward", self.dtype(), {&grad, &self, &target});
  if (weight.defined()) rule::pointwise("binary_cross_entropy_backward", self.dtype(), {&self, &weight});
  return like_argument(self);
}
void bce_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                         int64_t reduction, const Tensor& out) {
  kernel::elementwise_loss_backward(kernel::Loss::bce, grad, self, target, 0, 1.0, out);
  if (weight.defined()) kernel::binary(kernel::Binary::mul, out.dtype(), out, weight, out);
  if (reduction == by_mean) kernel::binary_wide(kernel::Binary::div, out.dtype(), out, Scalar(self.numel()), out);
}

Meta soft_margin_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t) {
  rule::pointwise("soft_margin_loss_backward", self.dtype(), {&grad, &self, &target});
  return rule::pointwise("soft_margin_loss_backward", self.dtype(), {&target, &self});
}
void soft_margin_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                                 const Tensor& out) {
  const double norm = reduction == by_mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
  const Tensor z = target.neg().mul(self).exp();
  const Tensor slope = target.mul(z).mul_(Scalar(-norm));
  kernel::copy(slope.div_(z.add_(Scalar(1))).mul(grad), out);
}

// ---- margins of classes ---------------------------------------------------------------------------------------------
kernel::Rows rows_in(const Tensor& self) {
  const int64_t n = self.dim() < 2 ? 1 : self.size(0);
  return {n, n == 0 ? 0 : self.numel() / n};
}
void check_margin_grad(const char* op, const Tensor& grad, const Tensor& self) {
  if (grad.dtype() != self.dtype())
    throw UserError(std::string(op) + ": expected grad_output of dtype " + std::string(name(self.dtype())) + ", found " +
                    std::string(name(grad.dtype())));
}
Meta multi_margin_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&,
                                const Tensor&, int64_t) {
  if (p.to_double() != 1 && p.to_double() != 2)
    throw UserError("multi_margin_loss_backward: only p == 1 and p == 2 supported");
  check_margin_grad("multi_margin_loss_backward", grad, self);
  if (!check(target.sym_numel() == (self.dim() < 2 ? SymInt(1) : self.sym_size(0))))
    throw UserError("multi_margin_loss_backward: inconsistent target size " + str(target.sym_sizes()) +
                    " for input of size " + str(self.sym_sizes()));
  return contiguous_as_argument(self);
}
void multi_margin_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p,
                                  const Scalar& margin, const Tensor& weight, int64_t reduction, const Tensor& out) {
  if (self.numel() == 0) return;
  kernel::multi_margin_loss_backward(dense_or_none(grad), dense_or_none(self), dense_or_none(target), rows_in(self),
                                     static_cast<int64_t>(p.to_double()), margin.to_double(), dense_or_none(weight),
                                     reduction, out);
}
Meta multilabel_backward_rule(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t,
                              const Tensor& is_target) {
  check_margin_grad("multilabel_margin_loss_backward", grad, self);
  for (const Tensor* t : {&target, &is_target})
    if (!check(t->sym_numel() == self.sym_numel()))
      throw UserError("multilabel_margin_loss_backward: inconsistent target size " + str(t->sym_sizes()) +
                      " for input of size " + str(self.sym_sizes()));
  return contiguous_as_argument(self);
}
void multilabel_backward_kernel(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                                const Tensor& is_target, const Tensor& out) {
  if (self.numel() == 0) return;
  kernel::multilabel_margin_loss_backward(dense_or_none(grad), dense_or_none(self), dense_or_none(target), rows_in(self),
                                          reduction, dense_or_none(is_target), out);
}

// ---- connectionist temporal classification --------------------------------------------------------------------------
void ctc_backward_kernel(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                         IntList target_lengths, const Tensor& loss, const Tensor& log_alpha, int64_t blank,
                         bool zero_infinity, const Tensor& out) {
  kernel::ctc_loss_backward(dense_or_none(grad), log_probs, targets, input_lengths, target_lengths, dense_or_none(loss),
                            dense_or_none(log_alpha), blank, zero_infinity, out);
}
std::vector<int64_t> listed(const Tensor& lengths) {
  const Tensor all = lengths.to(DType::int64).contiguous();
  return {all.data_as<int64_t>(), all.data_as<int64_t>() + all.numel()};
}
Tensor ctc_backward_by_tensors(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                               const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& loss,
                               const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  return _ctc_loss_backward(grad, log_probs, targets, listed(input_lengths), listed(target_lengths), loss, log_alpha, blank,
                            zero_infinity);
}

// ---- distances ------------------------------------------------------------------------------------------------------
Meta cdist_backward_rule(const Tensor& grad, const Tensor& x1, const Tensor& x2, double, const Tensor&) {
  const SymIntList a = x1.sym_sizes(), b = x2.sym_sizes(), g = grad.sym_sizes();
  if (a.size() < 2 || b.size() < 2 || g.size() < 2)
    throw UserError("_cdist_backward: expected tensors of at least two dimensions, found grad " + str(g) + ", x1 " + str(a) +
                    " and x2 " + str(b));
  Meta m = x1.meta();
  const SymInt pairs = product(SymIntList(g));
  if (guard_or(pairs == 0, false) || guard_or(x1.sym_size(-1) == 0, false)) return like_argument(x1);
  m.sizes = broadcast_sizes(SymInts(a.begin(), a.end() - 2), SymInts(b.begin(), b.end() - 2), "_cdist_backward");
  m.sizes.push_back(a[a.size() - 2]);
  m.sizes.push_back(a[a.size() - 1]);
  m.strides = contiguous_strides(m.sizes);
  return m;
}
Meta pdist_backward_rule(const Tensor&, const Tensor& self, double, const Tensor&) {
  if (!self.is_contiguous())
    throw UserError("_pdist_backward: requires self to be contiguous, found strides " + str(self.sym_strides()));
  return contiguous_as_argument(self);
}

}  // namespace

void register_losses_backward(Library& aten);
void register_losses_backward(Library& aten) {
  aten.def(
          "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
          "reduction=1) -> Tensor")
      .python("torch._C._nn.binary_cross_entropy_backward")
      .compute(bce_backward_rule, bce_backward_kernel)
      .out("binary_cross_entropy_backward.grad_input(grad_input)")
      .gradient("grad_output", "self target weight", gradient::bce_twice_given)
      .gradient("self", "grad_output self target weight", gradient::bce_twice_self)
      .gradient("target", "grad_output self weight", gradient::bce_twice_target);
  aten.def("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
      .python("torch._C._nn.soft_margin_loss_backward")
      .compute(soft_margin_backward_rule, soft_margin_backward_kernel)
      .out("soft_margin_loss_backward.grad_input(grad_input)")
      .tags(Tag::cast_out)
      .gradient("grad_output", "grad_output self target", gradient::soft_margin_twice_given)
      .gradient("self", "grad_output self target", gradient::soft_margin_twice);
  aten.def(
          "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? "
          "weight=None, int reduction=1) -> Tensor")
      .python("torch._C._nn.multi_margin_loss_backward")
      .compute(multi_margin_backward_rule, multi_margin_backward_kernel)
      .out("multi_margin_loss_backward.grad_input(grad_input)");
  aten.def(
          "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
          "-> Tensor")
      .python("torch._C._nn.multilabel_margin_loss_backward")
      .compute(multilabel_backward_rule, multilabel_backward_kernel)
      .out("multilabel_margin_loss_backward.grad_input(grad_input)");
  aten.def(
          "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
          "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
      .compute([](const Tensor&, const Tensor& log_probs, const Tensor&, IntList, IntList, const Tensor&, const Tensor&,
                  int64_t, bool) { return contiguous_as_argument(log_probs); },
               ctc_backward_kernel)
      .out("_ctc_loss_backward.out")
      .tags(Tag::dense_out);
  aten.def(
          "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
          "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
      .own([](const Tensor&, const Tensor& log_probs, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
              const Tensor&, int64_t, bool) -> Tensor { return make_tensor(contiguous_as_argument(log_probs), true); },
           ctc_backward_by_tensors);
  aten.def("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor")
      .compute(cdist_backward_rule, [](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist,
                                       const Tensor& out) { kernel::cdist_backward(grad, x1, x2, p, cdist, out); })
      .out("_cdist_backward.out")
      .tags(Tag::dense_out);
  aten.def("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor")
      .compute(pdist_backward_rule,
               [](const Tensor& grad, const Tensor& self, double p, const Tensor& pdist, const Tensor& out) {
                 kernel::pdist_backward(dense_or_none(grad), dense_or_none(self), p, dense_or_none(pdist), out);
               })
      .out("_pdist_backward.out")
      .tags(Tag::dense_out);
}

}  // namespace calque
