// A number in the place of a tensor whose value is symbolic: the 0-d tensor that stands for it remembers it.
#pragma once

#include <optional>

#include "calque/tensor/tensor_base.h"

namespace calque {

class WrappedNumber : public TensorExtra {
 public:
  explicit WrappedNumber(Scalar value) : value(std::move(value)) {}
  Scalar value;
};

// The symbolic number that `t` stands for; nothing for other tensors.
inline std::optional<Scalar> symbolic_number(const TensorBase& t) {
  if (!t.defined() || !t.impl().special || !t.impl().extra) return std::nullopt;
  const auto* number = dynamic_cast<const WrappedNumber*>(t.impl().extra.get());
  return number ? std::optional<Scalar>(number->value) : std::nullopt;
}

}  // namespace calque
