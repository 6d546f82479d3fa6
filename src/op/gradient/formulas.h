// The vocabulary of gradients in stanzas: what several formulas say.
#pragma once

#include "calque/op/gradient.h"
#include "calque/op/library.h"

namespace calque::gradient {

// Arithmetic with a number as PyTorch's formulas have it: the overload for a number, where a + 2 calls the one for two tensors.
Tensor plus(const Tensor& a, const Scalar& b);
Tensor minus(const Tensor& a, const Scalar& b);
Tensor times(const Tensor& a, const Scalar& b);
Tensor over(const Tensor& a, const Scalar& b);
Tensor maybe_times(const Tensor& a, const Scalar& b);  // not by one
Tensor number_minus(const Scalar& a, const Tensor& b);
Tensor number_over(const Scalar& a, const Tensor& b);

// A number of the tensor's dtype and device, without dimensions.
Tensor number_like(const Scalar& value, const Tensor& like);
// `then` where the condition holds, elsewhere the number.
Tensor where_or(const Tensor& condition, const Tensor& then, const Scalar& otherwise);
Tensor like(const Tensor& t);                                    // zeros, with the tensor's strides
Tensor zeros_of(const Gradients& g, std::string_view argument);  // of its sizes, contiguous

// A tensor whose values a formula may look at, as PyTorch's do where nobody traces.
bool has_values(const Tensor& t);

// A reduction's gradient or result with the dimensions that went, in order, back in their places.
Tensor restored(const Tensor& t, const std::vector<int64_t>& dims, bool keepdim);
Tensor restored(const Gradients& g, const Tensor& t);  // by arguments self, dim and keepdim; without dimensions as it is
SymInt count_of(SymIntList sizes, const std::vector<int64_t>& dims);

}  // namespace calque::gradient
