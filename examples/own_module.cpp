// A module of one's own: its weights in a safetensors file and back, and a hook that sees its calls.
#include <calque/calque.h>

#include <iostream>

using namespace calque;

struct Classifier : Typed<Classifier> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Sequential> body = child<Sequential>("body", Linear(4, 16), GELU(), Dropout(0.1));
  Child<Linear> head = child<Linear>("head", 16, 3);
  Tensor forward(const Tensor& x) { return head(body(x)); }
};

int main() try {
  manual_seed(0);
  Classifier model;
  model.eval();
  std::cout << model << "\n";
  for (const auto& [name, parameter] : model.named_parameters()) std::cout << name << " " << parameter.sizes() << "\n";

  const NoGradGuard no_grad;
  const Tensor x = randn({2, 4});
  const Tensor y = model(x);
  save_safetensors("classifier.safetensors", model.state_dict().items());

  manual_seed(1);  // other weights, until those of the file are loaded
  Classifier other;
  other.eval();
  other.load_state_dict(StateDict(SafetensorsFile::open("classifier.safetensors").tensors()));
  int calls = 0;
  other.register_forward_hook([&](Module& module, const Values&, const Kwargs&, const Value& result) {
    std::cout << module.class_name() << " gave " << result.to_tensor().sizes() << "\n";
    ++calls;
    return std::optional<Value>();  // the result stays as it is
  });
  const bool same = equal(other(x), y);
  std::cout << (same ? "the same" : "different") << " after " << calls << " call\n";
  return same && calls == 1 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
