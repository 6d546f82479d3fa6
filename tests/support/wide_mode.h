// What asks for float32 gets float64: models cast norms, softmax and losses to float32, whose sums differ by 1e-7 between any two orders
// of adding. With it, and its like on PyTorch's side (tests/peers/wide.py), float64 runs can be compared to the last digits.
#pragma once

#include "calque/op/mode.h"

namespace calque::test {

class WideMode final : public Mode {
 public:
  ModeSlot slot() const override { return ModeSlot::function; }
  Value call(const Operator& op, const Values& args) override {
    Values wide = args;
    for (Value& v : wide)
      if (v.kind() == Value::Kind::dtype && v.to_dtype() == DType::float32) v = DType::float64;
    return call_next(op, wide);
  }
};

}  // namespace calque::test
