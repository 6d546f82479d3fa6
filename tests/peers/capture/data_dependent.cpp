#include "calque/op/aten/unique.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "programs.h"

namespace calque::capture {

namespace {
void require(SymBool condition) {
  if (!check(condition)) throw UserError("a condition does not hold");
}
}  // namespace

void add_data_dependent(Programs& programs) {
  const Adder add(programs);
  add("nonzeros", [](const Tensor& x) {
    const Tensor n = (x > 0).nonzero();
    return results(n, n.sym_size(0), x[n.index_by({Slice(), 0})] * 2);
  });
  add("masked_rows", [](const Tensor& x, const Tensor& m) -> Value {
    const Tensor y = x[m];
    return tuple({y * 2, y.sum(), x.masked_select(m)});
  });
  add("item_as_size", [](const Tensor& n, const Tensor& x) -> Value {
    const SymInt k = n.item().sym_int();
    require(k >= 0);
    require(k <= 8);
    return tuple({zeros({k}), x * k});
  });
  add("uniques", [](const Tensor& n) {
    const auto [values, inverse, counts] = _unique2(n, true, true);
    return results(values, inverse, values.sym_size(0));
  });
  add("split_by_data", [](const Tensor& n, const Tensor& x) {
    const auto parts = n.unbind(0);
    const SymInt a = parts[0].item().sym_int();
    const SymInt c = parts[1].item().sym_int();
    require(a >= 0);
    require(c >= 0);
    require(a + c <= 9);
    const Tensor first = x.index_by({Slice(none, a)});
    return results(first, x.index_by({Slice(a, a + c)}).sum({0}));
  });
  add("truth_from_data", [](const Tensor& x) -> Value {
    const Scalar some = (x > 0).any().item();
    return tuple({some, full({2}, some), sym_ite(some.sym_bool(), 3, 4), !some.sym_bool()});
  });
  add("truth_as_factor", [](const Tensor& x) { return x * (x > 0).any().item(); });
  add("item_arithmetic", [](const Tensor& x) {
    const Tensor scaled = x * x[0].item();
    return scaled + x.sum().item();
  });
}

}  // namespace calque::capture
