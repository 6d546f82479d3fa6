#include <calque/op/ops.h>
#include <calque/trace/make_fx.h>

#include <iostream>

int main() {
  const calque::Tensor a = calque::tensor_of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const calque::Tensor b = calque::tensor_of<float>({10, 20, 30}, {3});

  // ATen's operators, typed: as functions, as methods, as C++ operators; with PyTorch's broadcasting and promotion.
  const calque::Tensor c = a * b + a;
  std::cout << c.str() << "\n";

  // The same table, by name.
  const calque::Value d = calque::call("aten::add.Tensor", {a, b}, {{"alpha", 2}});
  std::cout << d.to_tensor().str() << "\n";

  // A function traced with symbolic sizes: the graph serves other sizes too, and says which.
  const calque::TracedGraph g = calque::make_fx([](const calque::Tensor& x) { return x.relu().sum() / x.sym_numel(); },
                                                {.mode = calque::TracingMode::symbolic})(a);
  std::cout << g.graph().str() << g(calque::ones({4, 5})).to_tensor().str() << "\n";
}
