// The largest of a language modelling head's logits and its place, where nobody asks for the others: most of the head's
// weights need not be read then (a quarter of them is, in 8 bits). Exact: the place is the one that the whole product has,
// and where rounding could decide it the whole product is what is computed.
//
// One for a text that is being written: it belongs to one thread. A head whose weights operators have changed, or another
// head, is noticed and costs a new copy; writing through a pointer is not noticed.
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

  // head(hidden) for hidden [batch, length, size]; or numbers in its place whose largest, along the last dimension, stands
  // where it stands there and is it (but for rounding).
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
