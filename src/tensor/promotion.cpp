#include "calque/tensor/promotion.h"

#include "calque/base/error.h"

namespace calque {
namespace {

void join(std::optional<DType>& into, DType d) { into = into ? promote_types(*into, d) : d; }

// A weaker group's dtype is taken over only if it is of a higher kind.
DType combine(DType higher, std::optional<DType> lower) {
  if (!lower) return higher;
  if (is_complex(higher)) return higher;
  if (is_floating(higher)) return is_complex(*lower) ? promote_types(higher, *lower) : higher;
  if (higher == DType::bool_ || is_floating(*lower) || is_complex(*lower)) return promote_types(higher, *lower);
  return higher;
}

}  // namespace

TypePromotion& TypePromotion::add(const TensorBase& t) {
  DType d = t.dtype();
  if (t.impl().wrapped_number) {
    if (is_complex(d))
      d = default_dtype() == DType::float64 ? DType::complex128 : DType::complex64;
    else if (is_floating(d))
      d = default_dtype();
    join(wrapped_, d);
  } else {
    join(t.dim() > 0 ? dim_ : zero_, d);
  }
  return *this;
}

TypePromotion& TypePromotion::add(const Scalar& s) {
  join(wrapped_, s.dtype());
  return *this;
}

DType TypePromotion::result() const {
  if (dim_) {
    const DType d = combine(*dim_, zero_);
    return combine(d, wrapped_);
  }
  if (zero_) return combine(*zero_, wrapped_);
  internal_assert(wrapped_.has_value(), "dtype promotion without arguments");
  return *wrapped_;
}

}  // namespace calque
