#include "kernel/cpu/loss/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

template <class C>
C log_sum(std::initializer_list<C> values) {
  C most = std::max(values);
  if (most == -std::numeric_limits<C>::infinity()) most = 0;
  C total = 0;
  for (const C v : values) total += std::exp(v - most);
  return std::log(total) + most;
}

// The targets as numbers, and where each one's labels start.
struct Labels {
  TensorBase dense;
  std::vector<int64_t> starts;
  const int64_t* data = nullptr;

  Labels(const TensorBase& targets, IntList target_lengths, int64_t classes)
      : dense(make_tensor(targets.sizes(), DType::int64)), starts(target_lengths.size()) {
    copy(targets, dense);
    data = dense.numel() ? dense.data_as<int64_t>() : nullptr;
    int64_t position = 0;
    for (size_t b = 0; b < starts.size(); ++b) {
      starts[b] = targets.dim() == 1 ? position : static_cast<int64_t>(b) * targets.size(1);
      position += target_lengths[b];
      // Labels behind a target's length are padding: any number.
      for (int64_t i = 0; i < target_lengths[b]; ++i)
        if (const int64_t found = data[starts[b] + i]; found < 0 || found >= classes)
          throw UserError("ctc_loss: expected targets from 0 to " + std::to_string(classes - 1) + ", found " +
                          std::to_string(found) + " in target " + std::to_string(b));
    }
  }
  // Every other state is a blank.
  int64_t state(int64_t b, int64_t s, int64_t blank) const {
    return s % 2 == 0 ? blank : data[starts[static_cast<size_t>(b)] + s / 2];
  }
};

template <class C>
void run(const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths, IntList target_lengths,
         int64_t blank, const TensorBase& output, const TensorBase& log_alpha) {
  constexpr C none = -std::numeric_limits<C>::infinity();
  const int64_t batch = log_probs.size(1);
  const int64_t steps = log_probs.size(0);
  const int64_t classes = log_probs.size(2);
  const int64_t width = log_alpha.size(2);
  const Labels labels(targets, target_lengths, classes);
  const TensorBase probs = make_tensor(log_probs.sizes(), log_probs.dtype());
  copy(log_probs, probs);
  const C* p = probs.numel() ? probs.data_as<C>() : nullptr;
  C* alpha = log_alpha.numel() ? log_alpha.mutable_data_as<C>() : nullptr;
  C* out = output.mutable_data_as<C>();
  parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t length = input_lengths[static_cast<size_t>(b)];
      const int64_t target_length = target_lengths[static_cast<size_t>(b)];
      C* a = alpha + b * steps * width;
      std::fill_n(a, steps * width, none);
      if (length == 0) {
        out[b] = target_length == 0 ? C{0} : -none;
        continue;
      }
      const auto state = [&](int64_t s) { return labels.state(b, s, blank); };
      const auto prob = [&](int64_t t, int64_t s) { return p[(t * batch + b) * classes + state(s)]; };
      a[0] = prob(0, 0);
      if (target_length > 0) a[1] = prob(0, 1);
      for (int64_t t = 1; t < length; ++t)
        for (int64_t s = 0; s < 2 * target_length + 1; ++s) {
          const C* before = a + (t - 1) * width;
          const C stay = before[s];
          const C step = s > 0 ? before[s - 1] : none;
          const C skip = s > 1 && state(s) != state(s - 2) ? before[s - 2] : none;
          a[t * width + s] = log_sum({stay, step, skip}) + prob(t, s);
        }
      const C* last = a + (length - 1) * width;
      out[b] = -(target_length == 0 ? last[0] : log_sum({last[2 * target_length], last[2 * target_length - 1]}));
    }
  });
}

// From the last step back: the probability of what is still to come, and with alpha that of passing each state.
template <class C>
void run_backward(const TensorBase& grad, const TensorBase& log_probs, const Labels& labels, IntList input_lengths,
                  IntList target_lengths, const TensorBase& loss, const TensorBase& log_alpha, int64_t blank,
                  bool zero_infinity, const TensorBase& out) {
  constexpr C none = -std::numeric_limits<C>::infinity();
  const int64_t batch = log_probs.size(1), classes = log_probs.size(2), width = log_alpha.size(2);
  const int64_t steps = log_probs.size(0);
  const TensorBase probs = make_tensor(log_probs.sizes(), log_probs.dtype());
  copy(log_probs, probs);
  const C *p = probs.data_as<C>(), *alpha = log_alpha.data_as<C>(), *losses = loss.data_as<C>(), *g = grad.data_as<C>();
  C* y = out.mutable_data_as<C>();
  parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<C> beta(static_cast<size_t>(width)), behind(static_cast<size_t>(width));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t length = input_lengths[static_cast<size_t>(b)], states = 2 * target_lengths[static_cast<size_t>(b)] + 1;
      const auto state = [&](int64_t s) { return labels.state(b, s, blank); };
      const auto row = [&](int64_t t) { return y + (t * batch + b) * classes; };
      const bool is_dropped = zero_infinity && losses[b] == -none;
      for (int64_t t = is_dropped ? 0 : length; t < steps; ++t) std::fill_n(row(t), classes, C{0});
      if (is_dropped) continue;
      for (int64_t t = length - 1; t >= 0; --t) {
        const C* q = p + (t * batch + b) * classes;
        std::swap(beta, behind);
        for (int64_t s = 0; s < states; ++s) {
          const auto at = static_cast<size_t>(s);
          if (t == length - 1) {
            beta[at] = s >= states - 2 ? q[state(s)] : none;
            continue;
          }
          const C step = s + 1 < states ? behind[at + 1] : none;
          const C skip = s + 2 < states && state(s) != state(s + 2) ? behind[at + 2] : none;
          beta[at] = log_sum({behind[at], step, skip}) + q[state(s)];
        }
        C* passed = row(t);
        std::fill_n(passed, classes, none);
        for (int64_t s = 0; s < states; ++s) {
          C& sum = passed[state(s)];
          const C both = alpha[(b * steps + t) * width + s] + beta[static_cast<size_t>(s)];
          sum = sum == none ? both : log_sum({sum, both});
        }
        for (int64_t c = 0; c < classes; ++c) passed[c] = (std::exp(q[c]) - std::exp(passed[c] + losses[b] - q[c])) * g[b];
      }
    }
  });
}

}  // namespace

void ctc_loss_backward(const TensorBase& grad, const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths,
                       IntList target_lengths, const TensorBase& loss, const TensorBase& log_alpha, int64_t blank,
                       bool zero_infinity, const TensorBase& out) {
  if (log_probs.dtype() != DType::float32 && log_probs.dtype() != DType::float64)
    not_implemented("ctc_loss_backward_cpu", log_probs.dtype());
  if (out.numel() == 0) return;
  const int64_t batch = log_probs.size(1);
  int64_t longest = 0;
  for (const int64_t n : target_lengths) longest = std::max(longest, n);
  for (const int64_t n : input_lengths)
    if (n < 0 || n > log_probs.size(0))
      throw UserError("_ctc_loss_backward: expected input lengths of at most " + std::to_string(log_probs.size(0)) +
                      ", found " + std::to_string(n));
  if (static_cast<int64_t>(input_lengths.size()) != batch || static_cast<int64_t>(target_lengths.size()) != batch ||
      grad.numel() != batch || loss.numel() != batch || log_alpha.dim() != 3 || log_alpha.size(0) != batch ||
      log_alpha.size(1) != log_probs.size(0) || log_alpha.size(2) < 2 * longest + 1 || blank < 0 ||
      blank >= log_probs.size(2))
    throw UserError("_ctc_loss_backward: expected lengths, losses and gradients of " + std::to_string(batch) +
                    " samples and the forward's log_alpha");
  const Labels labels(targets, target_lengths, log_probs.size(2));
  if (log_probs.dtype() == DType::float32)
    run_backward<float>(grad, log_probs, labels, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity, out);
  else
    run_backward<double>(grad, log_probs, labels, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity, out);
}

void ctc_loss(const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths, IntList target_lengths,
              int64_t blank, const TensorBase& output, const TensorBase& log_alpha) {
  if (log_probs.dtype() == DType::float32)
    run<float>(log_probs, targets, input_lengths, target_lengths, blank, output, log_alpha);
  else if (log_probs.dtype() == DType::float64)
    run<double>(log_probs, targets, input_lengths, target_lengths, blank, output, log_alpha);
  else
    not_implemented("ctc_loss_cpu", log_probs.dtype());
}

}  // namespace calque::kernel
