// Borders around a tensor: a constant, its reflection, its edge. Any dtype, any strides.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Writes `value` into all of out but the box that starts at `begin` and has `inside`'s sizes, where inside goes.
void pad_constant(const TensorBase& inside, IntList begin, const Scalar& value, const TensorBase& out);

enum class Border : uint8_t { reflection, replication };

// pad: (before, after) of the last dimension, then of the one before it, ...; negative ones crop.
void pad_border(Border border, const TensorBase& self, IntList pad, const TensorBase& out);

// The gradient: each element of the input gets those of all places where it stands.
void pad_border_backward(Border border, const TensorBase& grad_output, IntList pad, const TensorBase& grad_input);

}  // namespace calque::kernel
