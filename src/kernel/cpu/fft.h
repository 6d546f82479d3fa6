// Discrete Fourier transforms of tensors along given dimensions, computed in float64 whatever the dtype: mixed radix, by
// convolution (Bluestein) where a large prime divides the length. Tensors of any strides; shapes are not checked here.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// out has input's sizes; both complex.
void fft_complex(const Tensor& input, IntList dims, bool forward, double scale, const Tensor& out);
// Real input; of the last of dims only the first half of the result if out is that short there.
void fft_real(const Tensor& input, IntList dims, double scale, const Tensor& out);
// The inverse, of one dimension: the missing half of the complex input is the conjugate of the given one.
void fft_to_real(const Tensor& input, int64_t dim, double scale, const Tensor& out);

}  // namespace calque::kernel
