// Distances between rows: all pairs of two matrices, all pairs of one. p is the norm's order.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// x1 [..., P, M], x2 [..., R, M] with broadcastable batches, out [..., P, R] contiguous.
void cdist(const TensorBase& x1, const TensorBase& x2, double p, const TensorBase& out);
// self [N, M] contiguous, out [N * (N - 1) / 2]: row i with each later row.
void pdist(const TensorBase& self, double p, const TensorBase& out);

// The gradients for x1 and for self; `distances` are the results. out is contiguous, cdist's without x1's broadcasting undone.
void cdist_backward(const TensorBase& grad, const TensorBase& x1, const TensorBase& x2, double p,
                    const TensorBase& distances, const TensorBase& out);
void pdist_backward(const TensorBase& grad, const TensorBase& self, double p, const TensorBase& distances,
                    const TensorBase& out);

}  // namespace calque::kernel
