#include <calque/export/export.h>
#include <calque/export/pt2.h>
#include <calque/nn/nn.h>
#include <calque/op/ops.h>
#include <calque/trace/make_fx.h>

#include <iostream>

struct Net : calque::Typed<Net> {
  static constexpr const char* forward_arguments[] = {"x"};
  calque::Child<calque::Linear> up = child<calque::Linear>("up", 3, 8);
  calque::Tensor forward(const calque::Tensor& x) { return up(x).relu(); }
};

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

  // A module exported for any number of rows, in a file that torch.export.load opens too; what PyTorch saves opens here.
  Net net;
  const calque::DynamicShapes rows = calque::parse_dynamic_shapes({"x=rows:1..1024,*"}, {"x"});
  calque::save_program(calque::export_program(net, {a}, {}, {.dynamic_shapes = rows}), "net.pt2");
  const auto program = calque::load_program("net.pt2");
  std::cout << program->str() << program->call({calque::ones({5, 3})}).to_tensor().str() << "\n";
}
