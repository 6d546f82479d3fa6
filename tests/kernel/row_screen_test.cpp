// The row with the largest product, found without reading the whole matrix, beside the whole product.
#include "kernel/cpu/gemm/row_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"

namespace calque::row_screen_test {
namespace {

using kernel::RowScreen;

Tensor normal(std::mt19937& random, int64_t rows, int64_t size, float scale = 1) {
  std::normal_distribution<float> distribution(0, scale);
  std::vector<float> values(static_cast<size_t>(rows * size));
  for (float& v : values) v = distribution(random);
  return tensor_of<float>(values, {rows, size});
}

// -1 where the screen cannot tell.
int64_t screened(const RowScreen& screen, const Tensor& x, int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows));
  if (!screen.scores(x.data_as<float>(), out.data())) return -1;
  return std::max_element(out.begin(), out.end()) - out.begin();
}
int64_t whole(const Tensor& weight, const Tensor& x, const Tensor& bias) {
  return linear(x, weight, bias).argmax(-1).item_as<int64_t>();
}

TEST(RowScreen, finds_the_largest_row_of_the_whole_product) {
  std::mt19937 random(1);
  int64_t told = 0, asked = 0;
  for (const auto& [rows, size] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {7, 3}, {100, 63}, {1000, 64}, {5000, 65}, {20000, 256}}) {
    for (const bool with_bias : {false, true}) {
      const Tensor weight = normal(random, rows, size, 0.02F);
      const Tensor bias = with_bias ? normal(random, 1, rows, 0.1F).view({rows}) : Tensor();
      const RowScreen screen(weight, bias);
      for (int i = 0; i < 40; ++i, ++asked) {
        const Tensor x = normal(random, 1, size, i % 2 == 0 ? 1 : 30);
        const int64_t found = screened(screen, x, rows);
        if (found < 0) continue;
        ++told;
        EXPECT_EQ(found, whole(weight, x, bias)) << rows << "x" << size;
      }
    }
  }
  EXPECT_GT(told, asked * 3 / 4);
}

TEST(RowScreen, rows_of_very_different_sizes_and_outliers) {
  std::mt19937 random(2);
  const int64_t rows = 4000, size = 128;
  Tensor weight = normal(random, rows, size);
  float* w = weight.mutable_data_as<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < size; ++i) w[r * size + i] *= std::exp2(static_cast<float>(r % 60) - 50);
    if (r % 3 == 0) w[r * size + r % size] *= 300;
  }
  const RowScreen screen(weight, {});
  int told = 0;
  for (int i = 0; i < 200; ++i) {
    const Tensor x = normal(random, 1, size);
    const int64_t found = screened(screen, x, rows);
    if (found < 0) continue;
    ++told;
    EXPECT_EQ(found, whole(weight, x, {}));
  }
  EXPECT_GT(told, 100);
}

TEST(RowScreen, does_not_tell_where_rounding_would) {
  std::mt19937 random(3);
  const int64_t rows = 500, size = 96;
  Tensor weight = normal(random, rows, size);
  const Tensor x = normal(random, 1, size);
  float* w = weight.mutable_data_as<float>();
  const int64_t best = whole(weight, x, {});
  const int64_t other = (best + 250) % rows;
  std::copy(w + best * size, w + (best + 1) * size, w + other * size);  // twins
  EXPECT_EQ(screened(RowScreen(weight, {}), x, rows), -1);
  w[other * size] = std::nextafter(w[other * size], 100.0F);
  EXPECT_EQ(screened(RowScreen(weight, {}), x, rows), -1);
  // A clear difference is told.
  for (int64_t i = 0; i < size; ++i) w[other * size + i] *= 1.1F;
  EXPECT_EQ(screened(RowScreen(weight, {}), x, rows), other);
  // Nothing to choose from.
  EXPECT_EQ(screened(RowScreen(zeros({rows, size}), {}), x, rows), -1);
  EXPECT_EQ(screened(RowScreen(weight, {}), zeros({1, size}), rows), -1);
}

TEST(RowScreen, numbers_that_are_none) {
  std::mt19937 random(4);
  const int64_t rows = 300, size = 32;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {nan, infinity, -infinity, 3e38F}) {
    Tensor weight = normal(random, rows, size);
    Tensor x = normal(random, 1, size);
    const auto told = [&] {
      const int64_t found = screened(RowScreen(weight, {}), x, rows);
      return found < 0 || found == whole(weight, x, {});
    };
    weight.mutable_data_as<float>()[40] = odd;
    EXPECT_TRUE(told()) << odd;
    weight.mutable_data_as<float>()[40] = 1;
    x.mutable_data_as<float>()[7] = odd;
    EXPECT_TRUE(told()) << odd;
  }
  const Tensor bias = full({rows}, 1.0);
  bias.mutable_data_as<float>()[5] = nan;
  EXPECT_EQ(screened(RowScreen(normal(random, rows, size), bias), normal(random, 1, size), rows), -1);
}

}  // namespace
}  // namespace calque::row_screen_test
