// Dropout layers: zeroes with probability p in training, nothing otherwise.
#pragma once

#include "calque/nn/typed.h"

namespace calque {

struct DropoutBase : Module {
  explicit DropoutBase(double p, bool inplace);  // UserError unless p is a probability
  std::string extra_repr() const override;
  double p;
  bool inplace;
};

#define CALQUE_DROPOUT(NAME)                                                     \
  struct NAME : Typed<NAME, DropoutBase> {                                       \
    static constexpr const char* torch_type = "torch.nn.modules.dropout." #NAME; \
    explicit NAME(double p = 0.5, bool inplace = false) : Typed(p, inplace) {}   \
    Tensor forward(const Tensor& input);                                         \
  };
CALQUE_DROPOUT(Dropout)
CALQUE_DROPOUT(Dropout1d)
CALQUE_DROPOUT(Dropout2d)
CALQUE_DROPOUT(Dropout3d)
CALQUE_DROPOUT(AlphaDropout)
CALQUE_DROPOUT(FeatureAlphaDropout)
#undef CALQUE_DROPOUT

}  // namespace calque
