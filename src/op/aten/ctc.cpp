// Connectionist temporal classification loss.
#include "calque/op/aten/ctc.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "kernel/cpu/loss/ctc.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "calque/op/aten/losses_backward.h"
#include "op/stanza.h"

namespace calque {
namespace {

[[noreturn]] void fail(const std::string& what) { throw UserError("ctc_loss: " + what); }

std::array<Meta, 2> ctc_rule(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths,
                             int64_t blank, bool) {
  if (log_probs.dim() != 3) fail("expected log_probs of sizes [T, N, C], found " + str(log_probs.sym_sizes()));
  if (targets.dtype() != DType::int32 && targets.dtype() != DType::int64)
    fail("expected targets of dtype int32 or int64, found " + std::string(name(targets.dtype())));
  const SymInt steps = log_probs.sym_size(0);
  const SymInt batch = log_probs.sym_size(1);
  if (blank < 0 || !check(SymInt(blank) < log_probs.sym_size(2)))
    fail("blank must be in label range, found " + std::to_string(blank) + " for " + log_probs.sym_size(2).str() + " labels");
  if (!check(SymInt(input_lengths.size()) == batch))
    fail("input_lengths must be of size batch_size " + batch.str() + ", found " + std::to_string(input_lengths.size()));
  if (!check(SymInt(target_lengths.size()) == batch))
    fail("target_lengths must be of size batch_size " + batch.str() + ", found " + std::to_string(target_lengths.size()));
  int64_t longest = 0;
  SymInt total = 0;
  for (const int64_t n : target_lengths) {
    if (n < 0) fail("Expected target_lengths to have value at least 0, but got value " + std::to_string(n));
    longest = std::max(longest, n);
    total += n;
  }
  for (const int64_t n : input_lengths) {
    if (n < 0) fail("Expected input_lengths to have value at least 0, but got value " + std::to_string(n));
    if (!check(SymInt(n) <= steps))
      fail("Expected input_lengths to have value at most " + steps.str() + ", but got value " + std::to_string(n));
  }
  if (targets.dim() == 1) {
    if (!check(targets.sym_size(0) == total))
      fail("Expected targets to have size " + total.str() + " at dimension 0, but got size " + targets.sym_size(0).str());
  } else if (targets.dim() == 2) {
    if (!check(targets.sym_size(0) == batch))
      fail("Expected targets to have size " + batch.str() + " at dimension 0, but got size " + targets.sym_size(0).str());
    if (!check(SymInt(longest) <= targets.sym_size(1)))
      fail("Expected targets to have size at least " + std::to_string(longest) + " at dimension 1, but got size " +
           targets.sym_size(1).str());
  } else {
    fail("expected targets of 1 or 2 dimensions, found sizes " + str(targets.sym_sizes()));
  }
  Meta output;
  output.sizes = {batch};
  output.strides = contiguous_strides(output.sizes);
  output.dtype = log_probs.dtype();
  output.device = log_probs.device();
  Meta alpha = output;
  alpha.sizes = {batch, steps, SymInt(longest) * 2 + 1};
  alpha.strides = contiguous_strides(alpha.sizes);
  return {output, alpha};
}
void ctc_kernel(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths, int64_t blank,
                bool, const Tensor& output, const Tensor& alpha) {
  kernel::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, output, alpha);
}

std::vector<int64_t> lengths_of(const char* what, const Tensor& t) {
  if (!is_integral(t.dtype(), false)) fail(std::string(what) + " must be integral, found " + std::string(name(t.dtype())));
  const Tensor wide = t.to(DType::int64).contiguous();
  const auto* data = wide.numel() ? wide.data_as<int64_t>() : nullptr;
  return {data, data + wide.numel()};
}
using Two = std::tuple<Tensor, Tensor>;
Two ctc_by_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                   int64_t blank, bool zero_infinity) {
  const std::vector<int64_t> inputs = lengths_of("input_lengths", input_lengths);
  const std::vector<int64_t> labels = lengths_of("target_lengths", target_lengths);
  return _ctc_loss(log_probs, targets, inputs, labels, blank, zero_infinity);
}

Tensor finish(Tensor loss, const Tensor& target_lengths, bool is_batched, int64_t reduction, bool zero_infinity) {
  if (zero_infinity) {
    const Tensor zero = zeros({}, loss.dtype(), Layout::strided, loss.device());
    loss = where(loss.eq(Scalar(std::numeric_limits<double>::infinity())), zero, loss);
  }
  if (reduction == 1) return loss.div(target_lengths.clamp_min(Scalar(1))).mean();
  if (reduction == 2) return loss.sum();
  return is_batched ? loss : loss.squeeze(0);
}
Tensor ctc_by_lists_body(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths,
                         int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool is_batched = log_probs.dim() == 3;
  const Tensor loss = std::get<0>(_ctc_loss(is_batched ? log_probs : log_probs.unsqueeze(1), targets, input_lengths,
                                            target_lengths, blank, zero_infinity));
  const Tensor counts = tensor_of<int64_t>(target_lengths, {static_cast<int64_t>(target_lengths.size())});
  const Tensor lengths = counts.to(loss.dtype());
  return finish(loss, lengths, is_batched, reduction, zero_infinity);
}
Tensor ctc_by_tensors_body(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  if (!modes_active() && !input_lengths.is_fake() && !target_lengths.is_fake()) {
    const std::vector<int64_t> inputs = lengths_of("input_lengths", input_lengths);
    const std::vector<int64_t> labels = lengths_of("target_lengths", target_lengths);
    return ctc_by_lists_body(log_probs, targets, inputs, labels, blank, reduction, zero_infinity);
  }
  const bool is_batched = log_probs.dim() == 3;
  const Tensor loss = std::get<0>(_ctc_loss(is_batched ? log_probs : log_probs.unsqueeze(1), targets, input_lengths,
                                            target_lengths, blank, zero_infinity));
  return finish(loss, target_lengths, is_batched, reduction, zero_infinity);
}

}  // namespace

void register_ctc(Library& aten);
void register_ctc(Library& aten) {
  aten.def(
          "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool "
          "zero_infinity=False) -> (Tensor, Tensor)")
      .compute(ctc_rule, ctc_kernel)
      .out("_ctc_loss.out")
      .tags(Tag::dense_out)
      .gradient("log_probs", "log_probs targets result0 result1",
                [](const Gradients& g) {
                  return _ctc_loss_backward(g.grad(), g["log_probs"], g["targets"], g.integers("input_lengths"),
                                            g.integers("target_lengths"), g["result0"], g["result1"], g.integer("blank"),
                                            g.flag("zero_infinity"));
                })
      .no_gradient("result1");
  aten.def(
          "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
          "bool zero_infinity=False) -> (Tensor, Tensor)")
      .own(
          [](const Tensor& log_probs, const Tensor& targets, const Tensor&, const Tensor&, int64_t, bool) -> Two {
            // Lengths are data: the longest target is at most what `targets` holds.
            const SymInt longest = targets.dim() == 2 ? targets.sym_size(1) : targets.sym_numel();
            Meta output;
            output.sizes = {log_probs.sym_size(1)};
            output.strides = contiguous_strides(output.sizes);
            output.dtype = log_probs.dtype();
            output.device = log_probs.device();
            Meta alpha = output;
            alpha.sizes = {log_probs.sym_size(1), log_probs.sym_size(0), longest * 2 + 1};
            alpha.strides = contiguous_strides(alpha.sizes);
            return {make_tensor(output, true), make_tensor(alpha, true)};
          },
          ctc_by_tensors)
      .tags(Tag::data_dependent)
      .gradient("log_probs", "log_probs targets input_lengths target_lengths result0 result1",
                [](const Gradients& g) {
                  return _ctc_loss_backward(g.grad(), g["log_probs"], g["targets"], g["input_lengths"], g["target_lengths"],
                                            g["result0"], g["result1"], g.integer("blank"), g.flag("zero_infinity"));
                })
      .no_gradient("result1");
  aten.def(
          "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int "
          "reduction=1, bool zero_infinity=False) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(ctc_by_lists_body);
  aten.def(
          "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int "
          "reduction=1, bool zero_infinity=False) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite(ctc_by_tensors_body);
}

}  // namespace calque
