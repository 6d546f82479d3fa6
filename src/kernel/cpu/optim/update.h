// What optimisers do to a parameter, element by element: one pass that reads the gradient and writes parameter and state. One call
// takes all parameters: their elements are one range that the threads share.
#pragma once

#include <array>
#include <span>
#include <variant>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// The numbers of one parameter's step. Beside the arrays of the rule: what state[i] is.
struct SgdUpdate {  // momentum buffer, or none
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the buffer has no value yet
};
struct AdamUpdate {  // exp_avg, exp_avg_sq, and with amsgrad max_exp_avg_sq
  double step_size, lerp_weight, beta2, one_minus_beta2, correction2_sqrt, eps;
  double weight_decay;  // added to the gradient; 0: none
  double shrink;        // what the parameter is multiplied by first; 1: nothing
  bool amsgrad, maximize;
};
struct AdagradUpdate {  // sum
  double lr, weight_decay, eps;
  bool maximize;
};
struct RmspropUpdate {  // square_avg, momentum buffer or none, grad_avg or none
  double lr, alpha, one_minus_alpha, eps, weight_decay, momentum;
  bool centered, maximize;
};
using UpdateNumbers = std::variant<SgdUpdate, AdamUpdate, AdagradUpdate, RmspropUpdate>;

// Tensors of one dtype, of as many elements in the same order of memory. An undefined state: the rule has none there.
struct UpdatePart {
  TensorBase parameter, gradient;
  std::array<TensorBase, 3> state;
  UpdateNumbers numbers;
};

// `rounded`: what PyTorch's operators would leave in memory between two of them is rounded to the dtype, as its optimisers do
// without `fused`. It makes a difference for 16-bit floats.
void update(std::span<const UpdatePart> parts, bool rounded);

// ---- between the files of this folder ---------------------------------------------------------------------------
// arrays: parameter, gradient, states.
using UpdateFn = void (*)(void* const* arrays, int64_t n, const void* numbers);
// By dtype: float32, float64, and the 16-bit floats with and without rounding.
struct UpdateRow {
  UpdateFn f32, f64, bf16_rounded, bf16, f16_rounded, f16;
};

}  // namespace calque::kernel
