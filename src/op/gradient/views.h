// The gradients of views and of the copies of views, one function for each kind of view.
#pragma once

#include "calque/op/gradient.h"

namespace calque::gradient {

// Formulas for `self`.
Tensor of_view(const Gradients& g);  // view, reshape: the sizes alone change
Tensor of_permute(const Gradients& g);
Tensor of_transpose(const Gradients& g);
Tensor of_t(const Gradients& g);
Tensor of_squeeze(const Gradients& g);
Tensor of_squeeze_dim(const Gradients& g);
Tensor of_squeeze_dims(const Gradients& g);
Tensor of_unsqueeze(const Gradients& g);
Tensor of_same(const Gradients& g);  // expand (the engine sums), alias, copies
Tensor of_slice(const Gradients& g);
Tensor of_select(const Gradients& g);
Tensor of_diagonal(const Gradients& g);
Tensor of_unfold(const Gradients& g);
Tensor of_as_strided(const Gradients& g);

}  // namespace calque::gradient
