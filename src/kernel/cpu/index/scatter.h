// One index for each element along one dimension: gather and the scatter family. Sizes have been checked by the
// operators' rules; an index outside the dimension is refused here.
#pragma once

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/index/index.h"

namespace calque::kernel {

// out[i][j] = self[index[i][j]][j] for dim 0; out has index's sizes.
void gather(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& out);
// self[index[i][j]][j] (how)= src[i][j], in the order of i.
void scatter(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src, Put how);
// The same with one value; `value` is converted to self's dtype.
void scatter(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const Scalar& value, Put how);

enum class ScatterReduction : uint8_t { sum, prod, mean, amax, amin };
// Without include_self, elements that are scattered to start from the reduction's neutral value.
void scatter_reduce(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                    ScatterReduction reduction, bool include_self);
// The same for whole slices: index is one-dimensional, source has its length along dim.
void index_reduce(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& source,
                  ScatterReduction reduction, bool include_self);

}  // namespace calque::kernel
