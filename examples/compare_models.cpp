// What does another dtype change?  compare_models FOLDER
// The weights tensor by tensor, and what comes of it in the output.
#include <calque/calque.h>
#include <calque/file/compare.h>

#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 2) throw UserError("usage: compare_models FOLDER");
  LoadOptions in_float, in_half;
  in_float.dtype = DType::float32;
  in_half.dtype = DType::float16;
  const auto a = from_pretrained(argv[1], in_float), b = from_pretrained(argv[1], in_half);

  const SameOptions options{.tol = 1e-3, .exact_dtype = false};
  const StateDict other = b->state_dict();
  int different = 0;
  for (const auto& [name, tensor] : a->state_dict()) {
    const TensorComparison c = compare_tensors(other.at(name), tensor, {}, options);
    if (!c.same) ++different;
    if (c.rmse > 1e-5) std::cout << name << ": root mean square error " << c.rmse << ", at most " << c.max_abs << "\n";
  }
  std::cout << different << " tensors differ by more than " << options.tol << "\n";

  const NoGradGuard no_grad;
  const Tensor ids = arange(1, 17).unsqueeze(0);
  const Tensor x = (*a)({{arg::input_ids, ids}}).logits(), y = (*b)({{arg::input_ids, ids}}).logits();
  const TensorComparison c = compare_tensors(y, x, {}, {.exact_dtype = false});
  std::cout << "logits " << x.sizes() << ": cosine " << c.cosine << ", at most " << c.max_abs << " apart\n";
  const bool same_choice = equal(x.argmax(-1), y.argmax(-1));
  std::cout << "the likeliest tokens are " << (same_choice ? "the same" : "different") << "\n";
  return c.cosine > 0.999 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
