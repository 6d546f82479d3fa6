// Several tensors, or several copies of one, written side by side into one. Outputs may have any strides.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// Writes the tensors one after the other along `dim` of out, cast to its dtype. Their sizes fit (those of no elements
// are skipped, whatever their shape).
void cat(ListRef<const TensorBase*> tensors, int64_t dim, const TensorBase& out);

// out is self repeated; out's sizes are self's times the repeats.
void repeat(const TensorBase& self, const TensorBase& out);

// out[k] = i for each i, `repeats[i]` times in a row. Both are int32 or int64 of the same dtype, one-dimensional.
void repeat_indices(const TensorBase& repeats, const TensorBase& out);
// The sum of repeats; UserError when one is negative.
int64_t repeat_total(const TensorBase& repeats);

}  // namespace calque::kernel
