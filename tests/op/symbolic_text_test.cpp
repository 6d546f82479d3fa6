// Values and tensors with symbolic numbers in them.
#include <gtest/gtest.h>

#include "calque/op/value.h"
#include "calque/sym/shape_env.h"

namespace calque::symbolic_text_test {
namespace {

TEST(Value, a_symbolic_number_is_not_a_plain_one) {
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x, dimension 0");
  const Value v(s);
  EXPECT_TRUE(identical(v.to_sym_int(), s));
  EXPECT_EQ(v.str(), s.str());
  try {
    (void)v.to_int();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.what(), "expected an int, found the symbolic value " + s.str() + "; its number is not known here");
  }
  EXPECT_TRUE(v.equals(Value(s)));
  EXPECT_FALSE(v.equals(Value(5)));
  EXPECT_TRUE(env->guards().empty());
}

TEST(Print, symbolic_sizes_of_a_fake_tensor_are_shown_as_expressions) {
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x, dimension 0");
  const Tensor t = make_tensor(Meta{{s, 3}, {3, 1}, DType::int64, Device{}}, true);
  EXPECT_EQ(t.str(), "FakeTensor(..., size=(" + s.str() + ", 3), dtype=torch.int64)");
}

}  // namespace
}  // namespace calque::symbolic_text_test
