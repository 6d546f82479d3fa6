// Convolutions of tensors, forward and backward: describes them to the typed kernel (kernel/cpu/convolution/convolution.h). Integers
// go through a plain loop. Shapes are not checked here.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

struct ConvolutionShape {
  int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  bool transposed = false;
  int64_t groups = 1;
  // Whether the zeros of the padding are multiplied with the weight (and give NaN with infinity) or left out.
  bool padding_counts = true, padding_counts_for_weight = true;
};

// input [n, c, ...], weight [out, c / groups, ...] (transposed: [c, out / groups, ...]), out as the shape rule says; all
// with one to three spatial dimensions. An undefined bias is none.
void convolve(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, const ConvolutionShape& shape,
              const TensorBase& out);

// Gradients; an undefined one is not computed.
void convolve_backward(const TensorBase& grad_output, const TensorBase& input, const TensorBase& weight,
                       const ConvolutionShape& shape, const TensorBase& grad_input, const TensorBase& grad_weight,
                       const TensorBase& grad_bias);

}  // namespace calque::kernel
