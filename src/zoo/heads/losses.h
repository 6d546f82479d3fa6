// The losses of transformers' heads. Logits are taken in float32; labels of -100 do not count.
#pragma once

#include "calque/hub/config.h"
#include "calque/op/tensor.h"

namespace calque {

Tensor class_loss(const Tensor& logits, const Tensor& labels);      // logits [n, classes], labels [n]
Tensor binary_loss(const Tensor& logits, const Tensor& labels);     // each logit is true or not
Tensor causal_lm_loss(const Tensor& logits, const Tensor& labels);  // each position predicts the next label
Tensor masked_lm_loss(const Tensor& logits, const Tensor& labels);  // logits [..., vocabulary], labels [...]
// As masked_lm_loss, in the dtype of the logits.
Tensor token_loss(const Tensor& logits, const Tensor& labels);
// By the config's problem_type, or as the number of labels and their dtype suggest.
Tensor sequence_classification_loss(const Config& config, const Tensor& logits, const Tensor& labels);
Tensor question_answering_loss(const Tensor& start_logits, const Tensor& end_logits, const Tensor& start_positions,
                               const Tensor& end_positions);

int64_t num_labels(const Config& config);  // of id2label, or 2

}  // namespace calque
