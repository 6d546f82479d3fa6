// Does not compile: each case is one mistake, chosen by -DWRONG=N. The first error must say so (tests/consumer/run.cmake).
#include <calque/nn/linear.h>
#include <calque/op/aten/matmul.h>

using calque::Tensor;

#if WRONG == 1  // a Linear takes one tensor
Tensor wrong(const Tensor& x) {
  calque::Linear fc(3, 4);
  return fc(x, x);
}
#elif WRONG == 2  // and no text
struct Net : calque::Typed<Net> {
  calque::Child<calque::Linear> fc = child<calque::Linear>("fc", 3, 4);
  Tensor forward(const Tensor&) { return fc("x"); }
};
#elif WRONG == 3  // weights are tensors
Tensor wrong(const Tensor& x) { return calque::linear(x, "weight"); }
#else             // right
Tensor right(const Tensor& x) { return calque::linear(x, x); }
#endif
