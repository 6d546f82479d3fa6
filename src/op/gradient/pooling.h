// The gradients of what puts values at places of a plane, or takes them from there.
#pragma once

#include <optional>

#include "calque/op/gradient.h"

namespace calque::gradient {

// What lies at the places that "indices" (or the second result) names, in the last `spatial` dimensions.
Tensor at_places(const Tensor& plane, const Tensor& indices, int spatial);
template <int spatial>
Tensor of_placed(const Gradients& g) {
  return at_places(g.grad(), g["indices"], spatial);
}
// The gradient does not depend on the values, only on their places.
Tensor no_second(const Gradients& g);
std::optional<int64_t> divisor_of(const Gradients& g);

}  // namespace calque::gradient
