// Reductions, softmax, normalisation, scans and losses: what their results look like and what they refuse. The values at
// large are compared with PyTorch's by opcheck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "calque/op/aten/losses.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/scans.h"
#include "calque/op/aten/softmax.h"
#include "support/error_support.h"

namespace calque::reductions_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

template <class T>
Tensor of(std::initializer_list<T> values, IntList sizes) {
  return tensor_of<T>(ListRef<T>(values), sizes);
}
template <class T>
std::vector<T> values_of(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.data_as<T>(), c.data_as<T>() + c.numel()};
}
std::vector<int64_t> sizes_of(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
using test::error_of;

Tensor two_by_three() { return of<float>({1, 2, 3, 4, 5, 6}, {2, 3}); }

TEST(Reductions, sum_over_each_dimension) {
  const Tensor x = two_by_three();
  EXPECT_THAT(values_of<float>(x.sum(IntList{0}, false, std::nullopt)), ElementsAre(5, 7, 9));
  EXPECT_THAT(values_of<float>(x.sum(IntList{1}, false, std::nullopt)), ElementsAre(6, 15));
  EXPECT_THAT(sizes_of(x.sum(IntList{1}, true, std::nullopt)), ElementsAre(2, 1));
  EXPECT_THAT(values_of<float>(x.sum()), ElementsAre(21));
  EXPECT_THAT(values_of<float>(x.transpose(0, 1).sum(IntList{0}, false, std::nullopt)), ElementsAre(6, 15));
}

TEST(Reductions, integers_add_up_in_int64) {
  const Tensor x = of<uint8_t>({200, 200}, {2});
  EXPECT_EQ(x.sum().dtype(), DType::int64);
  EXPECT_THAT(values_of<int64_t>(x.sum()), ElementsAre(400));
  EXPECT_THAT(values_of<int64_t>(x.prod()), ElementsAre(40000));
}

TEST(Reductions, nothing_adds_up_to_nothing) {
  const Tensor x = make_tensor({0, 3}, DType::float32);
  EXPECT_THAT(values_of<float>(x.sum(IntList{0}, false, std::nullopt)), ElementsAre(0, 0, 0));
  EXPECT_TRUE(std::isnan(values_of<float>(x.mean())[0]));
  EXPECT_THAT(error_of([&] { x.amax(IntList{0}, false); }),
              HasSubstr("amax(): Expected reduction dim 0 to have non-zero size"));
  EXPECT_THAT(error_of([&] { x.argmax(std::nullopt, false); }),
              HasSubstr("argmax(): Expected reduction dim to be specified"));
}

TEST(Reductions, a_million_tenths_stay_as_close_as_pytorchs) {
  const Tensor x = make_tensor({1 << 20}, DType::float32);
  std::fill_n(x.mutable_data_as<float>(), 1 << 20, 0.1F);
  const double exact = static_cast<double>(0.1F) * (1 << 20);
  EXPECT_NEAR(static_cast<double>(values_of<float>(x.sum())[0]), exact, 0.015625);  // PyTorch 2.13: 104857.6171875
}

TEST(Reductions, nan_wins_and_the_first_among_equals_is_named) {
  const Tensor x = of<float>({1, nan, 3, nan}, {4});
  EXPECT_TRUE(std::isnan(values_of<float>(x.amax(IntList{}, false))[0]));
  EXPECT_THAT(values_of<int64_t>(x.argmax(std::nullopt, false)), ElementsAre(1));
  const Tensor ties = of<float>({2, 5, 5, 1}, {4});
  EXPECT_THAT(values_of<int64_t>(ties.argmax(0, false)), ElementsAre(1));
}

TEST(Reductions, a_norm_of_complex_numbers_is_that_of_their_magnitudes) {
  const Tensor z = of<Complex64>({{3, 4}, {0, -2}, {5, 12}, {0, 0}}, {2, 2});
  const auto norm = [&](double p, std::optional<IntList> dim) {
    return values_of<float>(linalg_vector_norm(z, Scalar(p), dim, false, std::nullopt));
  };
  EXPECT_THAT(norm(1, IntList{1}), ElementsAre(7, 13));
  EXPECT_THAT(norm(2, IntList{0}), ElementsAre(std::sqrt(194.0F), 2));
  EXPECT_THAT(norm(inf, std::nullopt), ElementsAre(13));
  EXPECT_THAT(norm(0, std::nullopt), ElementsAre(3));
  EXPECT_THAT(values_of<float>(z.t().norm(2)), ElementsAre(testing::FloatEq(std::sqrt(198.0F))));
}

TEST(Reductions, bad_dimensions_are_named) {
  const Tensor x = two_by_three();
  EXPECT_THAT(error_of([&] { x.sum(IntList{2}, false, std::nullopt); }), HasSubstr("Dimension out of range"));
  EXPECT_THAT(error_of([&] {
                x.sum(IntList{0, -2}, false, std::nullopt);
              }),
              HasSubstr("dim 0 appears multiple times in the list of dims"));
  EXPECT_THAT(error_of([&] { of<int64_t>({1}, {1}).mean(); }), HasSubstr("mean(): could not infer output dtype"));
}

// Values by PyTorch. Rounded once at the end, five of them would be others.
TEST(Softmax, the_logarithm_over_the_last_dimension_of_16_bit_numbers_rounds_where_a_ten_does) {
  const Tensor x = of<float>({1.4765625F, 3.890625F, -1.3984375F, -2.609375F, -1.0234375F, -0.5390625F, 0.4921875F, 0.96875F,
                              0.90234375F, -1.9140625F, 3.0F, -0.62890625F},
                             {2, 6});
  EXPECT_THAT(values_of<float>(log_softmax(x.to(DType::bfloat16), 1).to(DType::float32)),
              ElementsAre(-2.53125F, -0.11083984375F, -5.40625F, -6.625F, -5.03125F, -4.53125F, -2.8125F, -2.34375F,
                          -2.40625F, -5.21875F, -0.3125F, -3.9375F));
  const Tensor y =
      of<float>({1.1884765625F, -0.254150390625F, -1.45703125F, 1.4423828125F, -1.1318359375F, 1.15625F}, {1, 6});
  EXPECT_THAT(values_of<float>(log_softmax(y.to(DType::float16), 1).to(DType::float32)),
              ElementsAre(-1.298828125F, -2.7421875F, -3.9453125F, -1.044921875F, -3.619140625F, -1.3310546875F));
}

TEST(Softmax, rows_add_up_to_one_and_masked_rows_are_nan) {
  const Tensor x = of<float>({0, 0, -inf, -inf, 1000, 0}, {3, 2});
  const std::vector<float> y = values_of<float>(x.softmax(1, std::nullopt));
  EXPECT_FLOAT_EQ(y[0], 0.5F);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[4], 1.0F);
  EXPECT_EQ(y[5], 0.0F);
}

TEST(LayerNorm, statistics_of_half_input_beside_float_parameters_are_float) {
  const Tensor x = two_by_three().to(DType::bfloat16);
  const Tensor w = of<float>({1, 1, 1}, {3});
  const auto [out, mean, rstd] = native_layer_norm(x, {SymInt(3)}, w, w, 1e-5);
  EXPECT_EQ(out.dtype(), DType::bfloat16);
  EXPECT_EQ(mean.dtype(), DType::float32);
  EXPECT_THAT(sizes_of(rstd), ElementsAre(2, 1));
  EXPECT_THAT(error_of([&] { native_layer_norm(x, {SymInt(4)}, {}, {}, 1e-5); }),
              HasSubstr("expected input with shape [*, 4]"));
}

TEST(Scans, running_sums_and_extremes) {
  const Tensor x = of<int32_t>({3, 1, 4}, {3});
  EXPECT_THAT(values_of<int64_t>(x.cumsum(0, std::nullopt)), ElementsAre(3, 4, 8));
  const auto [values, indices] = cummax(x, 0);
  EXPECT_THAT(values_of<int32_t>(values), ElementsAre(3, 3, 4));
  EXPECT_THAT(values_of<int64_t>(indices), ElementsAre(0, 0, 2));
}

TEST(Losses, cross_entropy_ignores_and_refuses) {
  const Tensor x = of<float>({0, 0, 0, 0}, {2, 2});
  const Tensor loss = cross_entropy_loss(x, of<int64_t>({1, -100}, {2}), {}, 1, SymInt(-100), 0);
  EXPECT_FLOAT_EQ(values_of<float>(loss)[0], std::log(2.0F));
  EXPECT_THAT(error_of([&] {
                cross_entropy_loss(x, of<int64_t>({1, 2}, {2}), {}, 1, SymInt(-100), 0);
              }),
              HasSubstr("Target 2 is out of bounds"));
}

}  // namespace
}  // namespace calque::reductions_test
