// PyTorch's dtype promotion over a whole argument list: tensors with dimensions decide first, then 0-d tensors, then
// numbers; a weaker group matters only if its kind (bool < integer < floating < complex) is higher.
#pragma once

#include <optional>

#include "calque/tensor/tensor_base.h"

namespace calque {

class TypePromotion {
 public:
  TypePromotion& add(const TensorBase& t);
  TypePromotion& add(const Scalar& s);
  DType result() const;

 private:
  std::optional<DType> dim_, zero_, wrapped_;
};

inline DType result_type(const TensorBase& a, const TensorBase& b) {
  if (a.dtype() == b.dtype() && a.impl().wrapped_number == b.impl().wrapped_number) return a.dtype();
  return TypePromotion().add(a).add(b).result();
}
inline DType result_type(const TensorBase& a, const Scalar& b) { return TypePromotion().add(a).add(b).result(); }

// Integers and bool become the default floating dtype; what true division, mean, exp and the like compute in.
inline DType float_type(DType d) { return is_integral(d) ? default_dtype() : d; }

}  // namespace calque
