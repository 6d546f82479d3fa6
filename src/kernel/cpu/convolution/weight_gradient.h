// The gradient of a convolution's weight: products of the output's gradient with the image's patches laid out as columns, a stretch
// of positions at a time.
#pragma once

#include "kernel/cpu/convolution/convolve.h"

namespace calque::kernel {

// grad_weight[o, i, tap] is the sum over batch and positions of other[n, o, position] * image[n, channel i of o's group, where the
// tap meets the position]. Zeros of the padding are multiplied like all others.
void weight_gradient_by_columns(const TensorBase& image, const TensorBase& other, const ConvolutionShape& shape,
                                const TensorBase& grad_weight);

}  // namespace calque::kernel
