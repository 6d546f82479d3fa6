// Several tensors, or several copies of one, written side by side into one. Outputs may have any strides.
#pragma once

#include "calque/tensor/tensor.h"

namespace calque::kernel {

// Writes the tensors one after the other along `dim` of out, cast to its dtype. Their sizes fit (those of no elements
// are skipped, whatever their shape).
void cat(TensorList tensors, int64_t dim, const Tensor& out);

// out is self repeated; out's sizes are self's times the repeats.
void repeat(const Tensor& self, const Tensor& out);

// out[k] = i for each i, `repeats[i]` times in a row. Both are int32 or int64 of the same dtype, one-dimensional.
void repeat_indices(const Tensor& repeats, const Tensor& out);
// The sum of repeats; UserError when one is negative.
int64_t repeat_total(const Tensor& repeats);

}  // namespace calque::kernel
