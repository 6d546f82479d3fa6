#include "kernel/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "calque/base/thread.h"

namespace calque::gemm_test {
namespace {

enum class Layout { row_major, column_major, scattered };

template <class T>
struct Matrix {
  std::vector<T> data;
  int64_t row = 0, col = 0;
  T& at(int64_t i, int64_t j) { return data[static_cast<size_t>(i * row + j * col)]; }
};

template <class T>
double to_double(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(static_cast<float>(x));
}

template <class T>
Matrix<T> random_matrix(int64_t rows, int64_t cols, Layout layout, std::mt19937& generator) {
  Matrix<T> m;
  switch (layout) {
    case Layout::row_major: m.row = cols + 3, m.col = 1; break;
    case Layout::column_major: m.row = 1, m.col = rows + 5; break;
    case Layout::scattered: m.row = 2 * cols + 1, m.col = 2; break;
  }
  m.data.resize(static_cast<size_t>(rows * m.row + cols * m.col + 1));
  std::uniform_real_distribution<float> real(-1, 1);
  std::uniform_int_distribution<int> integer(-120, 120);
  for (T& x : m.data) {
    if constexpr (std::is_integral_v<T>)
      x = static_cast<T>(integer(generator));
    else
      x = T(real(generator));
  }
  return m;
}

/// Bound for one result: the rounding of the sum and one rounding of the result.
template <class T>
double bound(double absolute_sum, double value, int64_t k) {
  const double sum_unit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  double unit = sum_unit;
  if (std::is_same_v<T, BFloat16>) unit = 0x1p-8;
  if (std::is_same_v<T, Half>) unit = 0x1p-11;
  return sum_unit * absolute_sum * (4 + 2 * std::sqrt(static_cast<double>(k))) + unit * std::abs(value) * 1.01 + 0x1p-25;
}

template <class T>
void check(int64_t m, int64_t n, int64_t k, Layout la, Layout lb, Layout lc, double alpha, double beta, bool with_bias) {
  std::mt19937 generator(static_cast<unsigned>(m * 7919 + n * 131 + k));
  Matrix<T> a = random_matrix<T>(m, k, la, generator), b = random_matrix<T>(k, n, lb, generator);
  Matrix<T> c = random_matrix<T>(m, n, lc, generator), bias = random_matrix<T>(1, n, Layout::row_major, generator);
  const Matrix<T> before = c;
  Gemm<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data.data(), g.a_row = a.row, g.a_col = a.col;
  g.b = b.data.data(), g.b_row = b.row, g.b_col = b.col;
  g.c = c.data.data(), g.c_row = c.row, g.c_col = c.col;
  if (with_bias) g.bias = bias.data.data();
  g.alpha = static_cast<decltype(g.alpha)>(alpha), g.beta = static_cast<decltype(g.beta)>(beta);
  gemm(g);
  Matrix<T> expected = before;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const std::string where = "m=" + std::to_string(m) + " n=" + std::to_string(n) + " k=" + std::to_string(k) +
                                " i=" + std::to_string(i) + " j=" + std::to_string(j) +
                                " layouts=" + std::to_string(static_cast<int>(la)) + std::to_string(static_cast<int>(lb)) +
                                std::to_string(static_cast<int>(lc));
      if constexpr (std::is_integral_v<T>) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += static_cast<uint64_t>(a.at(i, p)) * static_cast<uint64_t>(b.at(p, j));
        sum =
            sum * static_cast<uint64_t>(g.alpha) + static_cast<uint64_t>(g.beta) * static_cast<uint64_t>(expected.at(i, j));
        if (with_bias) sum += static_cast<uint64_t>(bias.at(0, j));
        expected.at(i, j) = static_cast<T>(sum);
        ASSERT_EQ(c.at(i, j), expected.at(i, j)) << where;
      } else {
        double sum = 0, absolute = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += to_double(a.at(i, p)) * to_double(b.at(p, j));
          absolute += std::abs(to_double(a.at(i, p)) * to_double(b.at(p, j)));
        }
        double value = alpha * sum;
        absolute *= std::abs(alpha);
        if (beta != 0) value += beta * to_double(expected.at(i, j)), absolute += std::abs(to_double(expected.at(i, j)));
        if (with_bias) value += to_double(bias.at(0, j)), absolute += std::abs(to_double(bias.at(0, j)));
        ASSERT_NEAR(to_double(c.at(i, j)), value, bound<T>(absolute, value, k)) << where;
        expected.at(i, j) = c.at(i, j);
      }
    }
  }
  // What lies between the rows of c is not c's.
  for (size_t i = 0; i < c.data.size(); ++i) ASSERT_EQ(to_double(c.data[i]), to_double(expected.data[i])) << i;
}

template <class T>
class GemmTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, BFloat16, Half, uint8_t, int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(GemmTest, Types);

constexpr Layout layouts[] = {Layout::row_major, Layout::column_major, Layout::scattered};

TYPED_TEST(GemmTest, EveryLayoutOfOddSizes) {
  constexpr int64_t sizes[][3] = {{1, 1, 1}, {1, 7, 5},   {5, 1, 9},    {2, 3, 4},    {7, 50, 33},
                                  {8, 8, 8}, {9, 17, 40}, {17, 33, 65}, {33, 49, 70}, {53, 20, 131}};
  for (const auto& [m, n, k] : sizes)
    for (const Layout a : layouts)
      for (const Layout b : layouts)
        for (const Layout c : layouts) check<TypeParam>(m, n, k, a, b, c, 1, 0, false);
}

TYPED_TEST(GemmTest, AlphaBetaAndBias) {
  for (const int64_t m : {1, 3, 20, 40})
    for (const Layout b : layouts)
      for (const Layout c : layouts) {
        check<TypeParam>(m, 37, 41, Layout::row_major, b, c, 3, 2, false);
        check<TypeParam>(m, 37, 41, Layout::row_major, b, c, -2, 1, true);
        check<TypeParam>(m, 37, 41, Layout::row_major, b, c, 1, 0, true);
      }
}

TYPED_TEST(GemmTest, SizesAroundTheBlocks) {
  for (const int64_t m : {23, 24, 25, 33})
    for (const int64_t k : {383, 385, 800}) {
      check<TypeParam>(m, 70, k, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, false);
      check<TypeParam>(m, 70, k, Layout::row_major, Layout::column_major, Layout::row_major, 1, 0, true);
    }
  check<TypeParam>(3, 900, 101, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, true);
  check<TypeParam>(800, 230, 30, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, true);
  check<TypeParam>(800, 230, 30, Layout::row_major, Layout::column_major, Layout::row_major, 1, 0, true);
  check<TypeParam>(20, 800, 100, Layout::column_major, Layout::row_major, Layout::row_major, 1, 0, true);
}

TYPED_TEST(GemmTest, ThreadsShareTheRowsOfAMatrixForOneRow) {
  const int before = num_threads();
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{700, 801}, {130, 4001}, {17, 20000}}) {
      check<TypeParam>(1, n, k, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, false);
      check<TypeParam>(1, n, k, Layout::row_major, Layout::row_major, Layout::scattered, -2, 1, true);
      check<TypeParam>(n, 1, k, Layout::column_major, Layout::row_major, Layout::column_major, 1, 2, true);
    }
  }
  set_num_threads(before);
}

TYPED_TEST(GemmTest, NothingToSumGivesBetaTimesCPlusBias) {
  check<TypeParam>(3, 4, 0, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, true);
  check<TypeParam>(30, 40, 0, Layout::row_major, Layout::column_major, Layout::row_major, 1, 2, false);
  check<TypeParam>(0, 4, 3, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, true);
  check<TypeParam>(4, 0, 3, Layout::row_major, Layout::row_major, Layout::row_major, 1, 0, true);
}

TYPED_TEST(GemmTest, BatchesBroadcastByStrideZero) {
  using T = TypeParam;
  std::mt19937 generator(1);
  constexpr int64_t m = 5, n = 6, k = 7;
  Matrix<T> a = random_matrix<T>(3 * m, k, Layout::row_major, generator);
  Matrix<T> b = random_matrix<T>(2 * k, n, Layout::row_major, generator);
  std::vector<T> c(3 * 2 * m * n), one(m * n);
  const int64_t sizes[] = {3, 2}, a_batch[] = {m * a.row, 0}, b_batch[] = {0, k * b.row}, c_batch[] = {2 * m * n, m * n};
  Gemm<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data.data(), g.a_row = a.row;
  g.b = b.data.data(), g.b_row = b.row;
  g.c = c.data(), g.c_row = n;
  g.batch_dims = 2, g.batch_sizes = sizes, g.a_batch = a_batch, g.b_batch = b_batch, g.c_batch = c_batch;
  gemm(g);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      Gemm<T> single = g;
      single.batch_dims = 0;
      single.a += i * m * a.row, single.b += j * k * b.row, single.c = one.data();
      gemm(single);
      for (int64_t e = 0; e < m * n; ++e)
        EXPECT_EQ(to_double(c[static_cast<size_t>((i * 2 + j) * m * n + e)]), to_double(one[static_cast<size_t>(e)]));
    }
}

TYPED_TEST(GemmTest, SameBitsEveryTimeForAThreadCount) {
  using T = TypeParam;
  std::mt19937 generator(2);
  constexpr int64_t m = 70, n = 300, k = 500;
  Matrix<T> a = random_matrix<T>(m, k, Layout::row_major, generator),
            b = random_matrix<T>(k, n, Layout::row_major, generator);
  std::vector<T> first(m * n), again(m * n);
  Gemm<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data.data(), g.a_row = a.row;
  g.b = b.data.data(), g.b_row = b.row;
  g.c_row = n;
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    g.c = first.data();
    gemm(g);
    g.c = again.data();
    for (int i = 0; i < 3; ++i) {
      gemm(g);
      for (size_t e = 0; e < first.size(); ++e) ASSERT_EQ(to_double(first[e]), to_double(again[e]));
    }
  }
  set_num_threads(before);
}

TEST(Gemm, beta_zero_ignores_the_old_contents) {
  const float a = 2, b = 3;
  float c = std::numeric_limits<float>::quiet_NaN();
  Gemm<float> g;
  g.m = g.n = g.k = 1;
  g.a = &a, g.b = &b, g.c = &c;
  gemm(g);
  EXPECT_EQ(c, 6);
}

TEST(Gemm, nan_and_infinity_stay_in_their_row) {
  for (const int64_t m : {2, 40}) {
    constexpr int64_t n = 50, k = 40;
    std::vector<float> a(static_cast<size_t>(m * k), 1), b(k * n, 1), c(static_cast<size_t>(m * n));
    a[3] = std::numeric_limits<float>::quiet_NaN();
    Gemm<float> g;
    g.m = m, g.n = n, g.k = k;
    g.a = a.data(), g.a_row = k, g.b = b.data(), g.b_row = n, g.c = c.data(), g.c_row = n;
    gemm(g);
    for (size_t j = 0; j < static_cast<size_t>(n); ++j) {
      EXPECT_TRUE(std::isnan(c[j]));
      for (size_t i = 1; i < static_cast<size_t>(m); ++i) EXPECT_EQ(c[i * n + j], k);
    }
  }
}

// Instructions for bfloat16 take subnormal numbers for 0. PyTorch multiplies with them above 4096 multiplications only.
TEST(Gemm, infinity_times_a_subnormal_is_infinity_in_small_products) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const Shape s : {Shape{1, 8, 8}, {5, 5, 5}, {8, 8, 8}, {8, 16, 32}, {16, 16, 16}, {40, 30, 3}})
    for (const bool b_along_k : {true, false}) {
      std::vector<BFloat16> a(static_cast<size_t>(s.m * s.k), BFloat16(1.0F)),
          b(static_cast<size_t>(s.k * s.n), BFloat16(1.0F));
      std::vector<BFloat16> c(static_cast<size_t>(s.m * s.n));
      a[1] = BFloat16(std::numeric_limits<float>::infinity());
      b[static_cast<size_t>(b_along_k ? 1 : s.n)] = BFloat16(1e-40F);
      Gemm<BFloat16> g;
      g.m = s.m, g.n = s.n, g.k = s.k;
      g.a = a.data(), g.a_row = s.k, g.b = b.data(), g.c = c.data(), g.c_row = s.n;
      if (b_along_k)
        g.b_row = 1, g.b_col = s.k;
      else
        g.b_row = s.n, g.b_col = 1;
      gemm(g);
      EXPECT_EQ(static_cast<float>(c[0]), std::numeric_limits<float>::infinity()) << s.m << " " << s.n << " " << s.k;
    }
}

}  // namespace
}  // namespace calque::gemm_test
