// Random fills: each writes an allocated output of any strides with the numbers that PyTorch's CPU kernels draw from
// the same generator state, in the same order (elements in the order of memory, not of indices). They check their
// arguments as PyTorch does, lock the generator for the whole fill, and take the default generator for nullptr.
// They do not allocate outputs, advance versions or decide shapes.
#pragma once

#include <cstdint>
#include <optional>

#include "calque/tensor/tensor_base.h"

namespace calque {

class Generator;

// [from, to), float16/bfloat16/float32/float64 and complex (both components).
void uniform_kernel(const TensorBase& out, double from, double to, Generator* generator);
// Contiguous outputs of 16 elements and more are drawn in blocks of 16 and leave the cached sample alone; all others
// one by one in float64, through it. Complex outputs share `std` between their components.
void normal_kernel(const TensorBase& out, double mean, double std, Generator* generator);
void log_normal_kernel(const TensorBase& out, double mean, double std, Generator* generator);
void cauchy_kernel(const TensorBase& out, double median, double sigma, Generator* generator);
void exponential_kernel(const TensorBase& out, double lambda, Generator* generator);
void geometric_kernel(const TensorBase& out, double p, Generator* generator);
void bernoulli_kernel(const TensorBase& out, double p, Generator* generator);
void bernoulli_kernel(const TensorBase& out, const TensorBase& p, Generator* generator);  // p broadcasts to out
// Dropout's factor: 1 / (1 - p) where kept, 0 where dropped; 0 <= p < 1.
void dropout_mask_kernel(const TensorBase& out, double p, Generator* generator);

// All of the dtype's non-negative integers; for floats 0 to 2^digits.
void random_kernel(const TensorBase& out, Generator* generator);
// [from, to); without `to` up to the dtype's largest integer, and from = INT64_MIN then means all 64 bits.
void random_from_to_kernel(const TensorBase& out, int64_t from, std::optional<int64_t> to, Generator* generator);
// A permutation of 0 .. numel - 1 into a 1-d output.
void randperm_kernel(const TensorBase& out, Generator* generator);

// `out` (int64) is [n_sample], or [rows, n_sample] for a matrix of rows of weights.
void multinomial_kernel(const TensorBase& out, const TensorBase& weights, bool replacement, Generator* generator);

}  // namespace calque
