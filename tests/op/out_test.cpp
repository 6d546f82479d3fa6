// out= arguments: which dtypes they may have, what memory they may share, how they are laid out afterwards.
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"

namespace calque::out_test {
namespace {

Tensor filled(std::initializer_list<SymInt> sizes, DType dtype) { return full(sizes, Scalar(2), dtype); }

bool refuses(const char* name, Values arguments, const Tensor& out, const char* why) {
  try {
    call(name, std::move(arguments), {{"out", out}});
    return false;
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    return true;
  }
}

template <class T>
concept WritesAPlainTensor = requires(T x, T y) { tanh(x, y); };
template <class T>
concept WritesAnOut = requires(T x, T y) { tanh(x, out(y)); };

TEST(Out, is_said_at_the_call) {
  static_assert(!WritesAPlainTensor<Tensor> && WritesAnOut<Tensor>);
  const Tensor x = filled({3}, DType::float32), y = filled({3}, DType::float32);
  EXPECT_TRUE(tanh(x, out(y)).is_same(y));
  EXPECT_TRUE(equal(y, x.tanh()));
}

TEST(Out, dtypes_must_match_unless_the_operator_casts) {
  const Tensor x = filled({3}, DType::float32);
  EXPECT_TRUE(refuses("aten::abs.out", {x}, filled({3}, DType::float64), "expected out= of dtype float32"));
  EXPECT_FALSE(refuses("aten::exp.out", {x}, filled({3}, DType::float64), ""));
  EXPECT_TRUE(refuses("aten::exp.out", {x}, filled({3}, DType::int64), "can't be cast"));
  EXPECT_FALSE(refuses("aten::eq.Tensor_out", {x, x}, filled({3}, DType::int64), ""));
}

TEST(Out, a_wider_one_holds_what_was_computed_in_the_narrow_dtype) {
  const Tensor out = filled({1}, DType::float64);
  call("aten::exp.out", {filled({1}, DType::float32)}, {{"out", out}});
  const double v = *out.data_as<double>();
  EXPECT_EQ(v, static_cast<double>(static_cast<float>(v)));
}

TEST(Out, reductions_compute_in_its_dtype) {
  const Tensor x = filled({100000}, DType::float16);
  const Tensor out = filled({}, DType::float32);
  call("aten::sum.IntList_out", {x, list({0})}, {{"out", out}});
  EXPECT_EQ(*out.data_as<float>(), 200000.0F);  // more than float16 holds
}

TEST(Out, may_not_share_memory_with_what_is_gathered_from) {
  const Tensor x = filled({3}, DType::float32);
  EXPECT_TRUE(refuses("aten::gather.out", {x, 0, filled({3}, DType::int64)}, x, "single memory location"));
  EXPECT_TRUE(refuses("aten::cat.out", {list({x, x})}, x, "single memory location"));
}

TEST(Out, elements_that_share_memory_may_be_filled_but_not_written) {
  const Tensor one = filled({1}, DType::float32);
  const Tensor many = one.expand({3});
  EXPECT_NO_THROW(many.fill_(Scalar(5)));
  EXPECT_EQ(*one.data_as<float>(), 5.0F);
  EXPECT_THROW(many.add_(filled({3}, DType::float32)), UserError);
}

TEST(Out, addbmm_may_resize_self) {
  const Tensor self = filled({1}, DType::float32);
  call("aten::addbmm_", {self, filled({2, 3, 4}, DType::float32), filled({2, 4, 5}, DType::float32)});
  EXPECT_EQ(str(self.sizes()), "[3, 5]");
}

TEST(Copy, uint64_from_two_to_the63_on) {
  const Tensor big = filled({1}, DType::uint64);
  *big.mutable_data_as<uint64_t>() = 0xF000000000000000U;
  const Tensor f = big.to(DType::float64);
  EXPECT_EQ(*f.data_as<double>(), 17293822569102704640.0);
  EXPECT_EQ(*big.to(DType::float32).data_as<float>(), 17293822569102704640.0F);
  EXPECT_EQ(*f.to(DType::uint64).data_as<uint64_t>(), 0xF000000000000000U);
}

}  // namespace
}  // namespace calque::out_test
