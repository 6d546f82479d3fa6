// The geometry of views: sizes, strides and offset that slicing, selecting, expanding, ... give, as PyTorch computes them
// over symbolic sizes. Pure arithmetic on a View: it makes no tensor and moves no data. `op` names the operator in errors.
#pragma once

#include <optional>

#include "calque/op/library.h"
#include "calque/op/tensor.h"

namespace calque::rule {

View geometry(const Tensor& self);

// A requested shape with its one -1 replaced; UserError where the number of elements cannot agree.
SymInts infer_size(const char* op, SymIntList shape, SymInt numel);
// The strides that let memory of `sizes` and `strides` be seen as `shape`; none where only a copy can.
std::optional<SymInts> view_strides(SymIntList sizes, SymIntList strides, SymIntList shape);
std::optional<SymInts> view_strides(const Tensor& self, const SymInts& shape);
View view(const char* op, const Tensor& self, SymIntList shape);

View permute(const char* op, View v, IntList dims);
View transpose(const char* op, View v, int64_t dim0, int64_t dim1);
View squeeze(View v);
View squeeze(const char* op, View v, IntList dims);
View unsqueeze(const char* op, View v, int64_t dim);
View expand(const char* op, View v, SymIntList sizes);
View select(const char* op, View v, int64_t dim, SymInt index);
View slice(const char* op, View v, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step);
View diagonal(const char* op, View v, int64_t offset, int64_t dim1, int64_t dim2);
View unfold(const char* op, View v, int64_t dimension, int64_t size, int64_t step);
View as_strided(const char* op, const Tensor& self, SymIntList size, SymIntList stride, std::optional<SymInt> offset);
// Without checks: [start, start + length) of a dimension.
View narrow(View v, size_t dim, SymInt start, SymInt length);

// One bit per wrapped dimension; a repeated one is a UserError.
using DimSet = uint64_t;
DimSet dim_set(const char* op, IntList dims, int64_t ndim);

Meta contiguous_like(const Tensor& self, SymInts sizes);
// Are the sizes equal? Guards where it is not known.
bool equal_sizes(SymIntList a, SymIntList b);

inline Tensor make(const Tensor& self, const View& v) { return make_view(self, v.sizes, v.strides, v.offset); }

}  // namespace calque::rule
