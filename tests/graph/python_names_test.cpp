// What stanzas say of Python's names: each of them is found, and PyTorch's own spelling is printed.
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/graph/function.h"
#include "calque/op/library.h"

namespace calque::python_names_test {
namespace {

TEST(PythonNames, every_operator_of_torch_has_a_function_or_a_method) {
  constexpr std::string_view method = "torch.Tensor.";
  for (const Operator* op : all_operators()) {
    if (op->schema().name_space != "aten") continue;
    const std::string& python = op->python_name();
    EXPECT_TRUE(python.starts_with(method) || find_function(python)) << op->name() << " is " << python;
  }
}

TEST(PythonNames, a_function_is_printed_as_pytorch_prints_it) {
  const auto printed = [](std::string_view name) { return get_function(name)->name(); };
  EXPECT_EQ(printed("torch.nn.functional.linear"), "torch._C._nn.linear");
  EXPECT_EQ(printed("torch.nn.functional.one_hot"), "torch._C._nn.one_hot");
  EXPECT_EQ(printed("torch.nn.functional.elu_"), "torch._C._nn.elu_");
  EXPECT_EQ(printed("torch.nn.functional.conv2d"), "torch.conv2d");
  EXPECT_EQ(printed("torch.nn.functional.relu_"), "torch.relu_");
  EXPECT_EQ(printed("torch.nn.functional.logsigmoid"), "torch._C._nn.log_sigmoid");
  EXPECT_EQ(printed("torch.einsum"), "torch.functional.einsum");
  EXPECT_EQ(printed("torch.relu"), "torch.relu");
}

TEST(PythonNames, pythons_operators_name_theirs) {
  EXPECT_EQ(find_python_alias("operator.truediv")->op->packet(), "aten::div");
  EXPECT_EQ(find_python_alias("operator.ilshift")->op->packet(), "aten::__ilshift__");
  EXPECT_EQ(find_python_alias("torch.Tensor.T.__get__")->op->name(), "aten::numpy_T");
  EXPECT_EQ(find_python_alias("operator.nothing"), nullptr);
}

TEST(PythonNames, a_wrong_name_is_refused_when_the_stanza_is_registered) {
  Library mine("python_names");
  const auto message = [](auto&& what) -> std::string {
    try {
      what();
    } catch (const UserError& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([&] { mine.def("a(Tensor self) -> Tensor").python_alias("operator.add"); }),
            "python_names::a: the Python name operator.add is taken by aten::add.Tensor");
  EXPECT_EQ(message([&] { mine.def("b(Tensor self) -> Tensor").python("torch.nn.functional.b", "torch._C._nn.c"); }),
            "python_names::b: torch._C._nn.c is no name of b");
}

}  // namespace
}  // namespace calque::python_names_test
