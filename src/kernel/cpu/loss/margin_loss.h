// Margin losses over classes. Rows are samples of `classes` scores; everything is contiguous.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

struct Rows {
  int64_t n, classes;
};

// out[i] = sum over classes j other than target[i] of max(0, margin - x[i, target[i]] + x[i, j])^p * weight[target[i]] / classes.
// reduction: 0 none, 1 mean, 2 sum. weight may be undefined.
void multi_margin_loss(const TensorBase& self, const TensorBase& target, Rows rows, int64_t p, double margin,
                       const TensorBase& weight, int64_t reduction, const TensorBase& out);

// The targets of a row end with its first -1. out[i] = sum over targets t and other classes j of max(0, 1 - x[i, t] + x[i, j]) / classes.
// is_target receives 1 at the targets and 0 elsewhere.
void multilabel_margin_loss(const TensorBase& self, const TensorBase& target, Rows rows, int64_t reduction,
                            const TensorBase& out, const TensorBase& is_target);

// Their gradients, times `grad`: of each row, or one number.
void multi_margin_loss_backward(const TensorBase& grad, const TensorBase& self, const TensorBase& target, Rows rows,
                                int64_t p, double margin, const TensorBase& weight, int64_t reduction,
                                const TensorBase& out);
void multilabel_margin_loss_backward(const TensorBase& grad, const TensorBase& self, const TensorBase& target, Rows rows,
                                     int64_t reduction, const TensorBase& is_target, const TensorBase& out);

}  // namespace calque::kernel
