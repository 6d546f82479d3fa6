#include "programs.h"

namespace calque::capture {

void add_indexing(Programs& programs) {
  const Adder add(programs);
  add("index_rows", [](const Tensor& x, const Tensor& n) -> Value {
    return tuple({x[n], x.index_by({n, Slice(none, 2)}), x.index_by({Slice(), 1})});
  });
  add("index_pairs", [](const Tensor& x, const Tensor& m, const Tensor& n) -> Value {
    const Tensor pairs = x.index_by({m, n});
    const Tensor rows = m.index_by({Slice(), none});
    return results(pairs, x.index_by({rows, n.index_by({none})}));
  });
  add("gathers", [](const Tensor& x, const Tensor& n) -> Value {
    return tuple({x.gather(1, n), x.index_select(0, n.index_by({Slice(), 0}))});
  });
  add("scatters", [](const Tensor& x, const Tensor& n, const Tensor& y) -> Value {
    return tuple({x.scatter(1, n, 0.5), x.scatter_add(1, n, y), x.scatter(1, n, y)});
  });
  add("index_puts", [](const Tensor& x, const Tensor& n, const Tensor& y) {
    const Tensor z = x.clone();
    z.set_by({n}, y);
    z.index_add_(0, n, y);
    return results(z, x.index_put({n}, y, true));
  });
  add("index_mixed", [](const Tensor& x) -> Value {
    const Tensor n = tensor({0, 2});
    return tuple({x.index_by({ellipsis, 0}), x.index_by({1, Slice(), none, Slice(1)}), x[-1], x.index_by({0, ellipsis, -1}),
                  x.index_by({Slice(), n})});
  });
  add("dynamic_slices", [](const Tensor& x) -> Value {
    const SymInt n = x.sym_size(0);
    return tuple({x.index_by({Slice(none, n - 1)}), x.index_by({Slice(floor_div(n, 2))}),
                  x.index_by({Slice(), Slice(none, x.sym_size(1) - 2)}), x.index_by({Slice(1, n - 1)})});
  });
  add("slice_by_argument", [](const Tensor& x, SymInt n) -> Value {
    return tuple({x.index_by({Slice(none, n)}), x.index_by({Slice(n)})});
  });
}

}  // namespace calque::capture
