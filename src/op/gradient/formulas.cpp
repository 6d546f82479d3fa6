#include "op/gradient/formulas.h"

#include <algorithm>

#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"

namespace calque::gradient {

namespace {

Tensor with_number(OperatorByName& op, const Tensor& a, const Scalar& b) {
  return call(op.get(), {a, Value(b)}).to_tensor();
}
Tensor filled_like(const Tensor& t, const Scalar& value) {
  return empty_like(t, {}, {}, {}, {}, MemoryFormat::preserve).fill_(value);
}

}  // namespace

Tensor plus(const Tensor& a, const Scalar& b) {
  static OperatorByName op("aten::add.Scalar");
  return with_number(op, a, b);
}
Tensor minus(const Tensor& a, const Scalar& b) {
  static OperatorByName op("aten::sub.Scalar");
  return with_number(op, a, b);
}
Tensor times(const Tensor& a, const Scalar& b) {
  static OperatorByName op("aten::mul.Scalar");
  return with_number(op, a, b);
}
Tensor over(const Tensor& a, const Scalar& b) {
  static OperatorByName op("aten::div.Scalar");
  return with_number(op, a, b);
}
Tensor maybe_times(const Tensor& a, const Scalar& b) {
  const bool is_one = !b.is_symbolic() && !b.is_complex() && b.to_double() == 1;
  return is_one ? a : times(a, b);
}
Tensor number_minus(const Scalar& a, const Tensor& b) { return filled_like(b, a).sub_(b); }
Tensor number_over(const Scalar& a, const Tensor& b) { return filled_like(b, a).div_(b); }

Tensor number_like(const Scalar& value, const Tensor& like) {
  return scalar_tensor(value, like.dtype(), Layout::strided, like.device());
}
Tensor where_or(const Tensor& condition, const Tensor& then, const Scalar& otherwise) {
  return where(condition, then, number_like(otherwise, then));
}
Tensor like(const Tensor& t) { return zeros_like(t); }
Tensor zeros_of(const Gradients& g, std::string_view argument) {
  const Meta& m = g.meta(argument);
  return zeros(SymIntList(m.sizes), m.dtype, Layout::strided, m.device);
}

bool has_values(const Tensor& t) { return !modes_active() && !t.impl().special; }

Tensor restored(const Tensor& t, const std::vector<int64_t>& dims, bool keepdim) {
  if (keepdim) return t;
  Tensor out = t;
  for (const int64_t d : dims) out = out.unsqueeze(d);
  return out;
}
Tensor restored(const Gradients& g, const Tensor& t) {
  const int64_t rank = g.dim("self");
  std::vector<int64_t> dims = g.integers("dim");
  for (int64_t& d : dims) d = d < 0 ? d + rank : d;
  std::sort(dims.begin(), dims.end());
  return restored(t, dims, rank == 0 || (g.argument("keepdim").is_none() ? false : g.flag("keepdim")));
}
SymInt count_of(SymIntList sizes, const std::vector<int64_t>& dims) {
  SymInt count = 1;
  if (!sizes.empty())
    for (const int64_t d : dims)
      count = count * sizes[static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(sizes.size()) : d)];
  return count;
}

}  // namespace calque::gradient
