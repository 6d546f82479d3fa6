// Losses over classes with a margin.
#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/losses_backward.h"
#include "calque/op/aten/margin_losses.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/loss/margin_loss.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

kernel::Rows rows_of(const Tensor& self) {
  if (self.dim() < 2) return {1, self.dim() == 0 ? 1 : self.size(0)};
  return {self.size(0), self.size(1)};
}
// A vector, or a matrix whose batch alone may be empty.
void check_scores(const char* op, const Tensor& self) {
  const int64_t d = self.dim();
  if (d <= 2 && (d == 0 || !guard_or(self.sym_size(d - 1) == 0, false))) return;
  throw UserError(std::string(op) +
                  ": expected non-empty vector or matrix with optional 0-dim batch size, but got: " + str(self.sym_sizes()));
}
Tensor in_order(const Tensor& t) {
  if (!t.defined() || t.is_contiguous()) return t;
  const Tensor out = make_tensor(t.sizes(), t.dtype());
  kernel::copy(t, out);
  return out;
}
Meta row_losses(const Tensor& self, SymInts sizes) { return rule::contiguous_like(self, std::move(sizes)); }

// PyTorch leaves the result as it was allocated; here it is what the mean or sum of nothing is.
void no_rows(int64_t reduction, const Tensor& out) {
  if (reduction != 0) out.fill_(reduction == 1 ? std::numeric_limits<double>::quiet_NaN() : 0.0);
}

Meta multi_margin_rule(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&, const Tensor& weight,
                       int64_t reduction) {
  const char* op = "multi_margin_loss";
  check_scores(op, self);
  if (p.to_double() != 1 && p.to_double() != 2)
    throw UserError(std::string(op) + ": only p == 1 and p == 2 supported, found " + p.str());
  const SymInt n = self.dim() < 2 ? SymInt(1) : self.sym_size(0);
  const SymInt classes = self.dim() == 0 ? SymInt(1) : self.sym_size(self.dim() - 1);
  if (target.dim() > 1 || !guard(target.sym_numel() == n))
    throw UserError(
        std::string(op) +
        ": target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [" +
        n.str() + "], but got " + str(target.sym_sizes()) + ". Input has shape " + str(self.sym_sizes()));
  if (weight.defined() && (weight.dim() > 1 || !guard(weight.sym_numel() == classes)))
    throw UserError(std::string(op) + ": inconsistent weight size, expected " + classes.str() + " but got " +
                    str(weight.sym_sizes()));
  return row_losses(self, reduction == 0 ? SymInts(target.sym_sizes().begin(), target.sym_sizes().end()) : SymInts{});
}
void multi_margin_kernel(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                         const Tensor& weight, int64_t reduction, const Tensor& out) {
  if (target.dtype() != DType::int64)
    throw UserError("multi_margin_loss: expected target of dtype int64, found " + std::string(name(target.dtype())));
  if (weight.defined() && weight.dtype() != self.dtype())
    throw UserError("multi_margin_loss: expected weight of dtype " + std::string(name(self.dtype())) + ", found " +
                    std::string(name(weight.dtype())));
  if (self.numel() == 0) return no_rows(reduction, out);
  kernel::multi_margin_loss(in_order(self), in_order(target), rows_of(self), static_cast<int64_t>(p.to_double()),
                            margin.to_double(), in_order(weight), reduction, out);
}

std::array<Meta, 2> multilabel_rule(const Tensor& self, const Tensor& target, int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  check_scores(op, self);
  const bool fits = self.dim() == 2 ? target.dim() == 2 && rule::equal_sizes(target.sym_sizes(), self.sym_sizes())
                                    : target.dim() <= 1 && guard(target.sym_numel() == self.sym_numel());
  if (!fits)
    throw UserError(std::string(op) + ": inconsistent target size: " + str(target.sym_sizes()) +
                    " for input of size: " + str(self.sym_sizes()));
  SymInts sizes;
  if (reduction == 0 && target.dim() == 2) sizes.push_back(target.sym_size(0));
  return {row_losses(self, std::move(sizes)),
          row_losses(self, SymInts(target.sym_sizes().begin(), target.sym_sizes().end()))};
}
void multilabel_kernel(const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out,
                       const Tensor& is_target) {
  if (target.dtype() != DType::int64)
    throw UserError("multilabel_margin_loss: expected target of dtype int64, found " + std::string(name(target.dtype())));
  if (self.numel() == 0) return no_rows(reduction, out);
  kernel::multilabel_margin_loss(in_order(self), in_order(target), rows_of(self), reduction, out, is_target);
}

}  // namespace

void register_margin_losses(Library& aten);
void register_margin_losses(Library& aten) {
  aten.def(
          "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) "
          "-> Tensor")
      .tags(Tag::always_apart)
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.multi_margin_loss")
      .compute(multi_margin_rule, multi_margin_kernel)
      .out("multi_margin_loss.out(out)")
      .gradient("self", "self target weight", [](const Gradients& g) {
        return multi_margin_loss_backward(g.grad(), g["self"], g["target"], g.scalar("p"), g.scalar("margin"), g["weight"],
                                          g.integer("reduction"));
      });
  aten.def("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)")
      .tags(Tag::always_apart)
      .tags(Tag::autocast_float32)
      .compute(multilabel_rule, multilabel_kernel)
      .out("multilabel_margin_loss_forward.output(output, is_target)")
      .gradient("self", "self target result1",
                [](const Gradients& g) {
                  return multilabel_margin_loss_backward(g.grad(), g["self"], g["target"], g.integer("reduction"),
                                                         g["result1"]);
                })
      .no_gradient("result1");
  aten.def("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.multilabel_margin_loss")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
        return std::get<0>(multilabel_margin_loss_forward(self, target, reduction));
      });
  aten.def("multilabel_margin_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) -> Tensor {
        return std::get<0>(
            multilabel_margin_loss_forward(self, target, reduction, Out(out), Out(new_empty(self, SymInts{0}))));
      })
      .tags(Tag::out);
}

}  // namespace calque
