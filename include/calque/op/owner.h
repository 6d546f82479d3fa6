// TensorOwner: whoever made a tensor without data and wants to answer operator calls on it, also when no mode is active
// (a fake tensor belongs to its fake mode wherever it goes). Hangs on the tensor as its TensorExtra.
#pragma once

#include "calque/op/operator.h"

namespace calque {

class TensorOwner : public TensorExtra {
 public:
  // Called below all modes. `op` is not composite.
  virtual Value answer(const Operator& op, const Values& args) = 0;
  // What depends on the values of `t`: how many of them are not zero, how many are distinct, what the single one is.
  // Symbols of the owner's shape environment, the same ones until `t` is written. None where there is no environment.
  enum class Unknown : uint8_t { nonzero, unique, value };
  virtual Value unknown(const Tensor& t, Unknown what) = 0;
};

// The owner of a tensor; null for others.
inline TensorOwner* owner_of(const Tensor& t) {
  return t.defined() && t.impl().special && t.impl().extra ? dynamic_cast<TensorOwner*>(t.impl().extra.get()) : nullptr;
}

// What a tensor hands on to a copy of it that is not made by an operator.
inline std::shared_ptr<TensorExtra> extra_for_copy(const TensorImpl& from) {
  return from.extra ? from.extra->for_copy(from.extra) : nullptr;
}

}  // namespace calque
