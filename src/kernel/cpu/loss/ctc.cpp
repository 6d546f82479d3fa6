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

template <class C>
void run(const TensorBase& log_probs, const TensorBase& targets, IntList input_lengths, IntList target_lengths,
         int64_t blank, const TensorBase& output, const TensorBase& log_alpha) {
  constexpr C none = -std::numeric_limits<C>::infinity();
  const int64_t batch = log_probs.size(1);
  const int64_t steps = log_probs.size(0);
  const int64_t classes = log_probs.size(2);
  const int64_t width = log_alpha.size(2);
  const TensorBase labels = make_tensor(targets.sizes(), DType::int64);
  copy(targets, labels);
  const TensorBase probs = make_tensor(log_probs.sizes(), log_probs.dtype());
  copy(log_probs, probs);
  const int64_t* label = labels.numel() ? labels.data_as<int64_t>() : nullptr;
  const C* p = probs.numel() ? probs.data_as<C>() : nullptr;
  C* alpha = log_alpha.numel() ? log_alpha.mutable_data_as<C>() : nullptr;
  C* out = output.mutable_data_as<C>();
  std::vector<int64_t> starts(static_cast<size_t>(batch));
  int64_t position = 0;
  for (int64_t b = 0; b < batch; ++b) {
    starts[static_cast<size_t>(b)] = targets.dim() == 1 ? position : b * targets.size(1);
    position += target_lengths[static_cast<size_t>(b)];
    // Labels behind a target's length are padding: any number.
    for (int64_t i = 0; i < target_lengths[static_cast<size_t>(b)]; ++i)
      if (const int64_t found = label[starts[static_cast<size_t>(b)] + i]; found < 0 || found >= classes)
        throw UserError("ctc_loss: expected targets from 0 to " + std::to_string(classes - 1) + ", found " +
                        std::to_string(found) + " in target " + std::to_string(b));
  }
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
      // Every other state is a blank.
      const auto state = [&](int64_t s) { return s % 2 == 0 ? blank : label[starts[static_cast<size_t>(b)] + s / 2]; };
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

}  // namespace

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
