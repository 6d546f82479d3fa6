// What the gradients of products share.
#pragma once

#include "calque/op/gradient.h"

namespace calque::gradient {

// The conjugate; a real tensor itself, without a call.
Tensor conjugated(const Tensor& t);

// Of `left` in alpha * left.mm(right), and of `right`: laid out as that factor was, where its columns are contiguous.
Tensor of_left_matrix(const Tensor& grad, const Tensor& right, const Meta& left, const Scalar& alpha);
Tensor of_right_matrix(const Tensor& grad, const Tensor& left, const Meta& right, const Scalar& alpha);
// Of the factors of a product of batches.
Tensor of_left_batch(const Tensor& grad, const Tensor& right, const Scalar& alpha);
Tensor of_right_batch(const Tensor& grad, const Tensor& left, const Scalar& alpha);

}  // namespace calque::gradient
