// One-operand mathematics, activations, selection and assertions: what the live comparison with PyTorch does not say in
// words. Expected numbers are PyTorch's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/asserts.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/library.h"
#include "calque/tensor/generator.h"
#include "support/error_support.h"

namespace calque::unary_test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::vector<float> values) { return tensor_of<float>(values, {static_cast<int64_t>(values.size())}); }
Tensor longs(std::vector<int64_t> values) { return tensor_of<int64_t>(values, {static_cast<int64_t>(values.size())}); }
Tensor bools(std::initializer_list<bool> values) {
  Tensor t = make_tensor({static_cast<int64_t>(values.size())}, DType::bool_);
  std::copy(values.begin(), values.end(), t.mutable_data_as<bool>());
  return t;
}
std::vector<float> values(const Tensor& t) { return {t.data_as<float>(), t.data_as<float>() + t.numel()}; }

using test::error_of;

TEST(Unary, integers_become_the_default_float) {
  const Tensor y = exp(longs({0, 1}));
  EXPECT_EQ(y.dtype(), DType::float32);
  EXPECT_FLOAT_EQ(values(y)[1], 2.7182817F);
  EXPECT_EQ(abs(longs({-3})).dtype(), DType::int64);
}

TEST(Unary, rounding_halves_go_to_even_and_keep_the_sign_of_zero) {
  const std::vector<float> y = values(round(floats({0.5F, 1.5F, 2.5F, -0.2F})));
  EXPECT_EQ(y, (std::vector<float>{0, 2, 2, -0.0F}));
  EXPECT_TRUE(std::signbit(y[3]));
  EXPECT_EQ(values(round(floats({1.2345F}), 2)), (std::vector<float>{1.23F}));
}

TEST(Unary, exp_covers_the_whole_range) {
  const std::vector<float> y = values(exp(floats({-inf, inf, -104, -100, 88.7F, 89, 0, -0.0F})));
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], inf);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], 3.78350585e-44F);
  EXPECT_FLOAT_EQ(y[4], 3.325976864e38F);
  EXPECT_EQ(y[5], inf);
  EXPECT_EQ(y[6], 1);
  EXPECT_EQ(y[7], 1);
  EXPECT_TRUE(std::isnan(values(exp(floats({nan})))[0]));
}

TEST(Unary, errors_name_the_operator_and_the_dtype) {
  EXPECT_EQ(error_of([] { abs(bools({true})); }), "\"abs\" not implemented for 'bool'\n  in aten::abs(self: bool[1])");
  EXPECT_EQ(error_of([] { gelu(longs({1})); }),
            "\"gelu\" not implemented for 'int64'\n  in aten::gelu(self: int64[1], approximate: 'none')");
  EXPECT_NE(error_of([] { neg(bools({true})); }).find("neg: negation, the `-` operator, on a bool tensor"),
            std::string::npos);
  EXPECT_NE(error_of([] { exp_(longs({1})); }).find("float32 can't be cast to the desired output type int64"),
            std::string::npos);
}

TEST(Activation, gelu_keeps_its_digits_in_the_tail) {
  // 0.5 * x * erfc(-x / sqrt(2)) in more digits than float32 has
  EXPECT_FLOAT_EQ(values(gelu(floats({-4})))[0], -1.2668497e-4F);
  EXPECT_FLOAT_EQ(values(gelu(floats({-6})))[0], -5.9195257e-9F);
  const std::vector<float> y = values(gelu(floats({-20, 0, 20, inf, nan})));
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 20);
  EXPECT_EQ(y[3], inf);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_NE(error_of([] { gelu(floats({1}), "fast"); }).find("must be either none or tanh, found 'fast'"),
            std::string::npos);
}

TEST(Activation, relu_keeps_nan_and_negative_zero) {
  const std::vector<float> y = values(relu(floats({-1, -0.0F, nan, 2})));
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::signbit(y[1]));
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 2);
}

TEST(Activation, clamp_promotes_and_propagates_nan) {
  EXPECT_EQ(clamp(longs({1, 5}), Scalar(0.5)).dtype(), DType::float32);
  EXPECT_TRUE(std::isnan(values(clamp(floats({1}), Scalar(static_cast<double>(nan)), Scalar(2)))[0]));
  EXPECT_EQ(values(clamp(floats({-1, 3}), Scalar(5), Scalar(2))), (std::vector<float>{2, 2}));
  EXPECT_NE(error_of([] { clamp(floats({1})); }).find("at least one of 'min' or 'max' must not be None"), std::string::npos);
  EXPECT_NE(error_of([] { clamp_(longs({1}), Scalar(0.5)); }).find("can't be cast"), std::string::npos);
}

TEST(Activation, glu_halves_a_dimension) {
  const Tensor y = glu(floats({1, 2, 0, 0}), 0);
  EXPECT_EQ(values(y), (std::vector<float>{0.5F, 1}));
  EXPECT_NE(error_of([] {
              glu(floats({1, 2, 3}));
            }).find("Halving dimension must be even, but dimension 0 is size 3"),
            std::string::npos);
}

TEST(Ternary, where_takes_numbers_and_promotes) {
  const Tensor c = bools({true, false});
  EXPECT_EQ(where(c, longs({1, 2}), Scalar(2.5)).dtype(), DType::float32);
  EXPECT_EQ(values(where(c, Scalar(1), Scalar(2.5))), (std::vector<float>{1, 2.5F}));
  EXPECT_NE(error_of([] { where(longs({1}), longs({1}), longs({1})); }).find("expected condition to be a boolean tensor"),
            std::string::npos);
}

TEST(Ternary, masked_fill_is_contiguous_and_checks_the_value) {
  const Tensor x = transpose(zeros({2, 3}), 0, 1);
  EXPECT_EQ(str(masked_fill(x, bools({true, false}), Scalar(1)).strides()), "[2, 1]");
  EXPECT_NE(error_of([] { masked_fill(make_tensor({2}, DType::int8), bools({true, false}), Scalar(300)); }), "");
  EXPECT_NE(error_of([] { masked_fill(floats({1}), longs({1}), Scalar(1)); }).find("only supports boolean masks"),
            std::string::npos);
}

TEST(Ternary, equal_and_close_compare_whole_tensors) {
  EXPECT_TRUE(equal(floats({1, 2}), floats({1, 2})));
  EXPECT_FALSE(equal(floats({nan}), floats({nan})));
  EXPECT_FALSE(equal(floats({1}), longs({1})));
  EXPECT_TRUE(allclose(floats({1, inf}), floats({1.000001F, inf})));
  EXPECT_TRUE(allclose(floats({nan}), floats({nan}), 1e-5, 1e-8, true));
  EXPECT_NE(error_of([] { is_nonzero(floats({1, 2})); }).find("more than one value is ambiguous"), std::string::npos);
}

TEST(Asserts, say_what_differs) {
  const Tensor x = floats({1, 2});
  EXPECT_NO_THROW(call("aten::_assert_tensor_metadata", {x}, {{"dtype", DType::float32}}));
  EXPECT_NE(error_of([&] {
              call("aten::_assert_tensor_metadata", {x}, {{"dtype", DType::float64}});
            }).find("Expected: float64, Got: float32"),
            std::string::npos);
  EXPECT_EQ(error_of([] { _assert_async(floats({0}), "nothing here"); }), "nothing here");
  EXPECT_EQ(error_of([] { _assert_scalar(Scalar(0), "zero"); }), "zero");
  EXPECT_NE(error_of([] { sym_constrain_range(Scalar(5), 0, 4); }).find("Invalid value range for 5 between [0, 4]"),
            std::string::npos);
  EXPECT_EQ(sym_numel(x).as_int(), 2);
}

TEST(Dropout, evaluation_is_the_identity_and_training_scales) {
  const Tensor x = ones({1000});
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  manual_seed(7);
  for (const float v : values(dropout(x, 0.75, true))) EXPECT_TRUE(v == 0 || v == 4);
  const auto [y, mask] = native_dropout(x, 0.5, true);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(y.data_as<float>()[i], mask.data_as<bool>()[i] ? 2 : 0);
  EXPECT_NE(error_of([&] { dropout(x, 1.5, true); }).find("between 0 and 1, but got 1.5"), std::string::npos);
}

}  // namespace
}  // namespace calque::unary_test
