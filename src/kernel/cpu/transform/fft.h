// Discrete Fourier transforms of tensors along given dimensions, computed in float64 whatever the dtype: mixed radix, by
// convolution (Bluestein) where a large prime divides the length. Tensors of any strides; shapes are not checked here.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// out has input's sizes; both complex.
void fft_complex(const TensorBase& input, IntList dims, bool forward, double scale, const TensorBase& out);
// Real input; of the last of dims only the first half of the result if out is that short there.
void fft_real(const TensorBase& input, IntList dims, double scale, const TensorBase& out);
// The inverse, of one dimension: the missing half of the complex input is the conjugate of the given one.
void fft_to_real(const TensorBase& input, int64_t dim, double scale, const TensorBase& out);

}  // namespace calque::kernel
