#include <limits>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "programs.h"

namespace calque::capture {

void add_sizes(Programs& programs) {
  const Adder add(programs);
  add("factories", [](const Tensor& x) -> Value {
    const SymInt n = x.sym_size(0);
    return tuple({zeros({n, 4}), ones({2, n}), full({n}, 7.0), arange(n), eye(n)});
  });
  add("ranges", [](const Tensor& x) -> Value {
    return tuple({arange(0, x.sym_size(1)) * 2, calque::call("aten::arange.start_step", {1, 10, 3}), linspace(0, 1, 5),
                  arange(x.sym_size(0), DType::float32) + 0.5});
  });
  add("literals", [](const Tensor& x) -> Value {
    return tuple({x + tensor({1.5, 2.5}), x * tensor(3), x - tensor({{1.0, 2.0}, {3.0, 4.0}})});
  });
  add("literal_item", [](const Tensor& x) {
    const Scalar three = tensor(3.0).item();
    const Tensor product = x * three;
    return product + tensor(2);
  });
  add("literal_written", [](const Tensor& x) {
    const Tensor c = tensor(1.0);
    c.add_(2);
    return x + c;
  });
  add("causal_mask", [](const Tensor& x) {
    const SymInt n = x.sym_size(0);
    const Tensor mask = ones({n, n}, DType::bool_).tril();
    return x.masked_fill(~mask, -std::numeric_limits<double>::infinity()).softmax(-1);
  });
  add("size_arithmetic", [](const Tensor& x) -> Value {
    const SymInt n = x.sym_size(0);
    const SymInt m = x.sym_size(1);
    return tuple(
        {zeros({n * m}), zeros({n + m, 2}), zeros({10 - n}), zeros({n * m + n}), zeros({guard(2 > n) ? SymInt(2) : n})});
  });
  add("size_division", [](const Tensor& x) -> Value {
    const SymInt n = x.sym_size(0);
    const SymInt m = x.sym_size(1);
    return tuple({zeros({floor_div(m, 2)}), zeros({m % 3 + 1}), zeros({floor_div(n + 1, 2), m}), zeros({sym_pow(n, 2)})});
  });
  add("size_outputs", [](const Tensor& x) -> Value {
    return tuple({x.sym_size(0), x.sym_size(1) * 2, x + x.sym_size(0), x.sym_numel()});
  });
  add("size_scaling", [](const Tensor& x) -> Value {
    const Tensor scaled = x / sym_float_pow(sym_float(x.sym_size(1)), 0.5);
    return results(scaled, x * (SymFloat(1.0) / sym_float(x.sym_size(0))));
  });
  add("branch_on_size", [](const Tensor& x) {
    if (guard(x.sym_size(0) > 5)) return x.index_by({Slice(none, 5)});
    return x + 1;
  });
  add("branch_on_divisibility", [](const Tensor& x) {
    if (guard(x.sym_size(1) % 2 == 0)) return x.view({x.sym_size(0), -1, 2});
    return x;
  });
  add("branch_on_equality", [](const Tensor& x, const Tensor& y) {
    if (guard(sym_eq(x.sym_sizes(), y.sym_sizes()))) return x + y;
    return x;
  });
  add("product_of_guards", [](const Tensor& x, const Tensor& y) {
    const Tensor product = matmul(x, y).view({-1});
    const Tensor flat = x.view({-1});
    return results(product, flat + y.reshape({-1}));
  });
  add("size_minimum", [](const Tensor& x) {
    const SymInt n = sym_min(x.sym_size(0), x.sym_size(1));
    const Tensor part = x.index_by({Slice(none, n)});
    return results(part, zeros({sym_max(x.sym_size(0), x.sym_size(1))}));
  });
  add("random_numbers", [](const Tensor& x) -> Value {
    return tuple({rand_like(x).sym_size(0), dropout(x, 0.5, false), randn({x.sym_size(0), 3}).sym_size(0)});
  });
}

}  // namespace calque::capture
