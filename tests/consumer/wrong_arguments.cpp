// Does not compile: a Linear takes one tensor. The first error must say so (tests/consumer/run.cmake).
#include <calque/nn/linear.h>

calque::Tensor wrong(const calque::Tensor& x) {
  calque::Linear fc(3, 4);
  return fc(x, x);
}
