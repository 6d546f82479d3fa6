// Embedding tables beyond plain lookup (which is a selection along dimension 0, kernel/cpu/index/index.h): the dense gradient,
// renormalisation of looked-up rows, and reduced bags of rows.
#pragma once

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// out[indices[i]] += grad[i], rows of padding_idx left out; scaled by each index's number of occurrences on request.
void embedding_dense_backward(const TensorBase& grad, const TensorBase& indices, int64_t padding_idx,
                              bool scale_by_frequency, const TensorBase& out);
// Rows of weight that are looked up and whose norm is above max_norm are scaled down to it.
void embedding_renorm(const TensorBase& weight, const TensorBase& indices, double max_norm, double norm_type);

enum class BagMode : uint8_t { sum, mean, max };
// Bag b holds the rows indices[offsets[b]], ... up to the next offset. offset2bag, where it has elements, gets the bag of
// each index; bag_size the number of rows (zeros for sums); max_indices as PyTorch has it.
void embedding_bag(const TensorBase& weight, const TensorBase& indices, const TensorBase& offsets, BagMode mode,
                   const TensorBase& per_sample_weights, int64_t padding_idx, const TensorBase& out,
                   const TensorBase& offset2bag, const TensorBase& bag_size, const TensorBase& max_indices);

// Gradients of bags. offset2bag may be empty: then the offsets say it. They are of the rows that the indices name, and of the
// per-sample weights.
struct BagGradient {
  TensorBase grad, indices, offsets, offset2bag, bag_size, max_indices, per_sample_weights;
  BagMode mode = BagMode::sum;
  bool scale_by_frequency = false;
  int64_t padding_idx = -1;
};
void embedding_bag_backward(const BagGradient& bags, const TensorBase& out);
void embedding_bag_weights_backward(const BagGradient& bags, const TensorBase& weight, const TensorBase& out);

}  // namespace calque::kernel
