// The largest of a language modelling head's logits and its place, for callers who need no other logit, as greedy search.
// It reads a copy of the head's weights in 8 bits, a quarter of their bytes, and of the weights themselves only the few rows
// that can be the largest. The place is always that in the whole product: where rounding could decide it, the whole product
// is computed.
//
// Make one for each text that is being written; it belongs to one thread. When an operator has written the head's weights, or
// when it gets another head, it makes a new copy; writing through a pointer is not noticed.
#pragma once

#include <memory>

#include "calque/hub/model_io.h"
#include "calque/nn/linear.h"

namespace calque {

namespace kernel {
class RowScreen;
}

class BestLogit {
 public:
  BestLogit();
  ~BestLogit();
  BestLogit(const BestLogit&) = delete;
  BestLogit& operator=(const BestLogit&) = delete;

  // head(hidden) for hidden [batch, length, size], or a tensor of its sizes that agrees with it, along the last dimension, in the
  // place of the largest number and (but for rounding) in that number. The other numbers mean nothing.
  Tensor operator()(const Child<Linear>& head, const Tensor& hidden);

 private:
  std::unique_ptr<kernel::RowScreen> screen_;
  int calls_ = 0;
};

// A model class that can be asked for the largest logit alone.
class BestLogitModel {
 public:
  virtual ~BestLogitModel() = default;
  // PretrainedModel::forward, but of the logits only the largest and its place count.
  virtual ModelOutput forward_best(const ModelInputs& inputs, BestLogit& best) = 0;
};

}  // namespace calque
