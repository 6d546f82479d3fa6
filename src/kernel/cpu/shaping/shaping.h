// Rearranging copies of one tensor: reversed, cut to a triangle. Any dtype, any strides.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// `dims`: bit d set when dimension d is reversed. out has self's sizes.
void flip(const TensorBase& self, uint64_t dims, const TensorBase& out);

// Dimension d of out is self's, moved on by shifts[d] with what falls off coming back in front; 0 <= shifts[d] < size.
void roll(const TensorBase& self, IntList shifts, const TensorBase& out);

// Keeps the part of the last two dimensions on and below (lower) or above diagonal k, zeroes the rest. out may be self.
void triangle(const TensorBase& self, int64_t k, bool lower, const TensorBase& out);

// Row and column numbers of a triangle of a rows x columns matrix: out is 2 x count, int32 or int64.
int64_t triangle_count(int64_t rows, int64_t columns, int64_t k, bool lower);
void triangle_indices(int64_t rows, int64_t columns, int64_t k, bool lower, const TensorBase& out);

}  // namespace calque::kernel
