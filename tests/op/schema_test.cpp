// Schemas as text. What is expected here is what torch.ops.aten.<name>._schema of PyTorch 2.13 prints; ops.py compares all of them.
#include <gtest/gtest.h>

#include "calque/op/operator.h"
#include "calque/op/schema.h"
#include "calque/op/value.h"

namespace calque::schema_test {
namespace {

TEST(Schema, floating_defaults_print_as_pytorch_prints_them) {
  EXPECT_EQ(get_operator("aten::cdist").schema().str(),
            "aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor");
  EXPECT_EQ(get_operator("aten::allclose").schema().str(),
            "aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
            "equal_nan=False) -> bool");
  EXPECT_EQ(get_operator("aten::normal_").schema().str(),
            "aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)");
}

TEST(Schema, numbers_of_any_type_keep_their_own) {
  EXPECT_EQ(get_operator("aten::elu").schema().str(),
            "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor");
  EXPECT_EQ(get_operator("aten::leaky_relu").schema().str(),
            "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor");
  EXPECT_EQ(parse_schema("f(Scalar a=2.0, Scalar b=-0.5, float c=-0.0, float d=1e15, float e=1e20) -> ()").str(),
            "aten::f(Scalar a=2., Scalar b=-0.5, float c=0., float d=1000000000000000., float e=1e+20) -> ()");
}

TEST(Schema, lists_of_equal_integers_print_as_one_unless_symbolic_or_of_length_one) {
  EXPECT_EQ(get_operator("aten::max_pool2d").schema().str(),
            "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
            "ceil_mode=False) -> Tensor");
  EXPECT_EQ(get_operator("aten::max_pool1d").schema().str(),
            "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], "
            "bool ceil_mode=False) -> Tensor");
  EXPECT_EQ(get_operator("aten::fft_fft2").schema().str(),
            "aten::fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor");
  EXPECT_EQ(parse_schema("f(SymInt[2] stride=1) -> ()").str(), "aten::f(SymInt[2] stride=[1, 1]) -> ()");
}

TEST(Schema, enumerations_print_as_their_numbers) {
  EXPECT_EQ(get_operator("aten::tril_indices").schema().str(),
            "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor");
  EXPECT_EQ(get_operator("aten::nll_loss").schema().str(),
            "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
            "Tensor");
}

TEST(Schema, what_is_printed_reads_back_with_the_same_defaults) {
  for (const Operator* op : all_operators()) {
    const Schema& schema = op->schema();
    const Schema again = parse_schema(schema.str());
    EXPECT_EQ(again.str(), schema.str());
    ASSERT_EQ(again.arguments.size(), schema.arguments.size()) << schema.str();
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const auto& was = schema.arguments[i].default_value;
      const auto& is = again.arguments[i].default_value;
      ASSERT_EQ(was == nullptr, is == nullptr) << schema.str();
      if (was) {
        EXPECT_TRUE(was->equals(*is)) << schema.str() << ": " << was->str() << " and " << is->str();
      }
    }
  }
}

}  // namespace
}  // namespace calque::schema_test
