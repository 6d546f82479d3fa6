// Somebody else's program: only installed headers, the installed archive, and operators found by name. It fails if
// linking a static archive lost the registration of the operators.
#include <calque/base/version.h>
#include <calque/op/mode.h>
#include <calque/op/ops.h>

#include <iostream>

int main() {
  const calque::Tensor a = calque::tensor_of<float>({1, 2, 3}, {3});
  const calque::Value sum = calque::call("aten::add.Tensor", {a, a});
  const float last = sum.to_tensor().data_as<float>()[2];
  std::cout << "calque " << calque::version() << ", " << calque::all_operators().size() << " operators, 3 + 3 = " << last
            << "\n";
  return last == 6 ? 0 : 1;
}
