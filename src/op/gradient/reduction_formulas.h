// Gradients that reductions share.
#pragma once

#include "op/gradient/formulas.h"

namespace calque::gradient {

Tensor sum_backward(const Gradients& g, const Tensor& grad);  // by arguments self, dim and keepdim
Tensor mean_backward(const Gradients& g, const Tensor& grad);
Tensor var_backward(const Gradients& g, const Tensor& grad);  // and correction
Tensor std_backward(const Gradients& g, const Tensor& grad, const Tensor& result);
// Of what was equal to an extremum or a median of all elements.
Tensor shared_evenly(const Gradients& g);
Tensor extremum_backward(const Gradients& g);  // of amax and amin
Tensor aminmax_backward(const Gradients& g);
Tensor prod_backward(const Gradients& g);
Tensor prod_dim_backward(const Gradients& g);
Tensor selected_backward(const Gradients& g, bool keepdim);  // of values at indices, by arguments self and dim
Tensor norm_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& norm, const std::vector<int64_t>& dims,
                     bool keepdim);
Tensor logcumsumexp_backward(const Gradients& g);

}  // namespace calque::gradient
