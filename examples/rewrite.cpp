// A module traced as it was written, and a pattern in it replaced: x * sigmoid(x), in two steps, becomes silu, in one.
#include <calque/calque.h>

#include <iostream>

using namespace calque;

struct Gate : Typed<Gate> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> fc = child<Linear>("fc", 4, 4);
  Tensor forward(const Tensor& x) {
    const Tensor h = fc(x);
    return h * sigmoid(h) + 1;
  }
};

int main() try {
  Gate gate;
  const std::shared_ptr<GraphModule> traced = symbolic_trace(gate);
  std::cout << "before\n" << traced->graph();

  // Patterns are graphs in their text form; a placeholder matches anything.
  const auto replaced = replace_pattern(traced->graph(),
                                        R"(
    %x = placeholder
    %s = torch.sigmoid(%x)
    %y = operator.mul(%x, %s)
    return %y)",
                                        R"(
    %x = placeholder
    %y = torch.nn.functional.silu(%x)
    return %y)");
  traced->graph().lint();
  std::cout << "after\n" << traced->graph() << replaced.size() << " replaced\n";

  const Tensor x = randn({3, 4});
  const bool close = allclose((*traced)({x}).to_tensor(), gate(x));
  std::cout << (close ? "the results agree\n" : "the results differ\n");
  return close && replaced.size() == 1 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
