#include "op/gradient/pooling.h"
#include "op/gradient/formulas.h"

#include "op/gradient/views.h"

namespace calque::gradient {

Tensor at_places(const Tensor& plane, const Tensor& indices, int spatial) {
  const SymIntList sizes = indices.sym_sizes();
  SymInts flat(sizes.begin(), sizes.end() - spatial);
  flat.push_back(SymInt(-1));
  return plane.contiguous().view(flat).gather(-1, indices.contiguous().view(flat)).view(sizes);
}

Tensor no_second(const Gradients& g) { return zeros_of(g, "self"); }

std::optional<int64_t> divisor_of(const Gradients& g) {
  const Value& divisor = g.argument("divisor_override");
  return divisor.is_none() ? std::nullopt : std::optional<int64_t>(divisor.to_int());
}

}  // namespace calque::gradient
