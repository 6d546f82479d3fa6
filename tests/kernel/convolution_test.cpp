#include "kernel/cpu/convolution/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"

namespace calque::convolution_test {
namespace {

template <class T>
double to_double(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(static_cast<float>(x));
}

struct Case {
  int64_t batch = 2, in = 4, out = 6, groups = 1;
  int64_t size[3] = {1, 9, 11}, kernel[3] = {1, 3, 3}, stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};
  int64_t output_padding[3] = {};
  bool transposed = false, channels_last = false, bias = true;
};

void strides_of(const int64_t (&sizes)[5], bool channels_last, int64_t (&strides)[5]) {
  constexpr int plain[] = {4, 3, 2, 1, 0}, last[] = {1, 4, 3, 2, 0};
  int64_t stride = 1;
  for (const int d : channels_last ? last : plain) {
    strides[d] = stride;
    stride *= sizes[d];
  }
}

int64_t count_of(const int64_t (&sizes)[5]) { return sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4]; }

template <class T>
std::vector<T> random_values(int64_t count, std::mt19937& generator) {
  std::uniform_real_distribution<float> real(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& x : values) x = T(real(generator));
  return values;
}

template <class T>
void check(const Case& c) {
  std::mt19937 generator(static_cast<unsigned>(c.in * 31 + c.out));
  Convolution<T> g;
  g.batch = c.batch, g.in_channels = c.in, g.out_channels = c.out, g.groups = c.groups, g.transposed = c.transposed;
  for (int d = 0; d < 3; ++d) {
    g.in_size[d] = c.size[d], g.kernel[d] = c.kernel[d], g.stride[d] = c.stride[d];
    g.padding[d] = c.padding[d], g.dilation[d] = c.dilation[d];
    const int64_t reach = c.dilation[d] * (c.kernel[d] - 1) + 1;
    g.out_size[d] = c.transposed ? (c.size[d] - 1) * c.stride[d] - 2 * c.padding[d] + reach + c.output_padding[d]
                                 : (c.size[d] + 2 * c.padding[d] - reach) / c.stride[d] + 1;
  }
  const int64_t in_sizes[5] = {c.batch, c.in, c.size[0], c.size[1], c.size[2]};
  const int64_t out_sizes[5] = {c.batch, c.out, g.out_size[0], g.out_size[1], g.out_size[2]};
  const int64_t weight_sizes[5] = {c.transposed ? c.in : c.out, (c.transposed ? c.out : c.in) / c.groups, c.kernel[0],
                                   c.kernel[1], c.kernel[2]};
  strides_of(in_sizes, c.channels_last, g.in_strides);
  strides_of(out_sizes, c.channels_last, g.out_strides);
  strides_of(weight_sizes, c.channels_last, g.weight_strides);
  const auto in = random_values<T>(count_of(in_sizes), generator);
  const auto weight = random_values<T>(count_of(weight_sizes), generator);
  const auto bias = random_values<T>(c.out, generator);
  std::vector<T> out(static_cast<size_t>(count_of(out_sizes)), T(7.0F));
  g.in = in.data(), g.weight = weight.data(), g.bias = c.bias ? bias.data() : nullptr, g.out = out.data();
  convolution(g);

  // The definition: every image number times every tap, added where they meet.
  std::vector<double> expected(out.size(), 0), size(out.size(), 0);
  const int64_t group_in = c.in / c.groups, group_out = c.out / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out; ++o)
      for (int64_t i = 0; i < group_in; ++i)
        for (int64_t tz = 0; tz < c.kernel[0]; ++tz)
          for (int64_t ty = 0; ty < c.kernel[1]; ++ty)
            for (int64_t tx = 0; tx < c.kernel[2]; ++tx) {
              const int64_t channel = o / group_out * group_in + i, t[3] = {tz, ty, tx};
              const int64_t w = c.transposed ? channel * g.weight_strides[0] + o % group_out * g.weight_strides[1]
                                             : o * g.weight_strides[0] + i * g.weight_strides[1];
              const double factor = to_double(weight[static_cast<size_t>(
                  w + tz * g.weight_strides[2] + ty * g.weight_strides[3] + tx * g.weight_strides[4])]);
              const int64_t(&walk)[3] = c.transposed ? g.in_size : g.out_size;
              const int64_t(&other)[3] = c.transposed ? g.out_size : g.in_size;
              int64_t p[3];
              for (p[0] = 0; p[0] < walk[0]; ++p[0])
                for (p[1] = 0; p[1] < walk[1]; ++p[1])
                  for (p[2] = 0; p[2] < walk[2]; ++p[2]) {
                    int64_t q[3];
                    bool inside = true;
                    for (int d = 0; d < 3; ++d) {
                      q[d] = p[d] * c.stride[d] + t[d] * c.dilation[d] - c.padding[d];
                      inside &= q[d] >= 0 && q[d] < other[d];
                    }
                    if (!inside) continue;
                    const int64_t(&at)[3] = c.transposed ? p : q;
                    const int64_t(&to)[3] = c.transposed ? q : p;
                    const double x = to_double(
                        in[static_cast<size_t>(n * g.in_strides[0] + channel * g.in_strides[1] + at[0] * g.in_strides[2] +
                                               at[1] * g.in_strides[3] + at[2] * g.in_strides[4])]);
                    const auto e =
                        static_cast<size_t>(n * g.out_strides[0] + o * g.out_strides[1] + to[0] * g.out_strides[2] +
                                            to[1] * g.out_strides[3] + to[2] * g.out_strides[4]);
                    expected[e] += x * factor;
                    size[e] += std::abs(x * factor);
                  }
            }
  const double unit = std::is_same_v<T, double> ? 1e-14 : 2e-6;
  double half_unit = 0;
  if (std::is_same_v<T, BFloat16>) half_unit = 0x1p-8;
  if (std::is_same_v<T, Half>) half_unit = 0x1p-11;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out; ++o)
      for (int64_t z = 0; z < g.out_size[0]; ++z)
        for (int64_t y = 0; y < g.out_size[1]; ++y)
          for (int64_t x = 0; x < g.out_size[2]; ++x) {
            const auto e = static_cast<size_t>(n * g.out_strides[0] + o * g.out_strides[1] + z * g.out_strides[2] +
                                               y * g.out_strides[3] + x * g.out_strides[4]);
            const double value = expected[e] + (c.bias ? to_double(bias[static_cast<size_t>(o)]) : 0);
            ASSERT_NEAR(to_double(out[e]), value, unit * (size[e] + 1) + half_unit * std::abs(value))
                << "n=" << n << " o=" << o << " z=" << z << " y=" << y << " x=" << x;
          }
}

template <class T>
class ConvolutionTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, BFloat16, Half>;
TYPED_TEST_SUITE(ConvolutionTest, Types);

TYPED_TEST(ConvolutionTest, PlainStridedPaddedDilated) {
  for (const bool last : {false, true})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {0, 1, 2})
        for (const int64_t dilation : {1, 2})
          check<TypeParam>({.stride = {1, stride, stride},
                            .padding = {0, padding, padding},
                            .dilation = {1, dilation, dilation},
                            .channels_last = last});
}

TYPED_TEST(ConvolutionTest, OneAndThreeDimensions) {
  check<TypeParam>({.size = {1, 1, 200}, .kernel = {1, 1, 10}, .stride = {1, 1, 5}});
  check<TypeParam>({.size = {1, 1, 60}, .kernel = {1, 1, 7}, .padding = {0, 0, 3}, .bias = false});
  check<TypeParam>({.size = {5, 6, 7}, .kernel = {2, 3, 3}, .stride = {1, 2, 1}, .padding = {1, 0, 1}});
  check<TypeParam>({.size = {5, 6, 7}, .kernel = {2, 3, 3}, .stride = {2, 1, 1}, .channels_last = true});
}

TYPED_TEST(ConvolutionTest, PointwiseIsAMultiplication) {
  for (const bool last : {false, true}) {
    check<TypeParam>({.in = 33, .out = 50, .size = {1, 7, 9}, .kernel = {1, 1, 1}, .channels_last = last});
    check<TypeParam>(
        {.in = 33, .out = 50, .size = {1, 7, 9}, .kernel = {1, 1, 1}, .stride = {1, 2, 2}, .channels_last = last});
    check<TypeParam>(
        {.in = 33, .out = 50, .size = {1, 7, 9}, .kernel = {1, 1, 1}, .padding = {0, 1, 1}, .channels_last = last});
  }
}

TYPED_TEST(ConvolutionTest, GroupsAndDepthwise) {
  for (const bool last : {false, true}) {
    check<TypeParam>({.in = 6, .out = 9, .groups = 3, .padding = {0, 1, 1}, .channels_last = last});
    for (const int64_t stride : {1, 2, 3})
      check<TypeParam>({.in = 8,
                        .out = 8,
                        .groups = 8,
                        .size = {1, 10, 70},
                        .kernel = {1, 3, 5},
                        .stride = {1, stride, stride},
                        .padding = {0, 1, 2},
                        .channels_last = last});
    check<TypeParam>({.in = 4, .out = 8, .groups = 4, .padding = {0, 1, 1}, .channels_last = last});
    check<TypeParam>({.in = 4,
                      .out = 4,
                      .groups = 4,
                      .size = {4, 5, 20},
                      .kernel = {3, 3, 3},
                      .padding = {1, 1, 1},
                      .channels_last = last});
  }
}

TYPED_TEST(ConvolutionTest, Transposed) {
  for (const bool last : {false, true})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {0, 1})
        for (const int64_t dilation : {1, 2}) {
          check<TypeParam>({.stride = {1, stride, stride},
                            .padding = {0, padding, padding},
                            .dilation = {1, dilation, dilation},
                            .output_padding = {0, stride - 1, 0},
                            .transposed = true,
                            .channels_last = last});
        }
  check<TypeParam>({.size = {1, 1, 30}, .kernel = {1, 1, 4}, .stride = {1, 1, 2}, .padding = {0, 0, 1}, .transposed = true});
  check<TypeParam>({.size = {1, 1, 30}, .kernel = {1, 1, 2}, .stride = {1, 1, 5}, .transposed = true});
  check<TypeParam>(
      {.in = 6, .out = 4, .groups = 2, .size = {3, 4, 5}, .kernel = {2, 3, 3}, .stride = {2, 2, 1}, .transposed = true});
  check<TypeParam>({.in = 4, .out = 4, .groups = 4, .stride = {1, 2, 2}, .transposed = true});
}

TYPED_TEST(ConvolutionTest, ManyChannelsCrossTheBlocks) {
  check<TypeParam>({.batch = 1, .in = 70, .out = 90, .size = {1, 14, 14}, .padding = {0, 1, 1}});
  check<TypeParam>({.batch = 1, .in = 3, .out = 40, .size = {1, 48, 48}, .kernel = {1, 16, 16}, .stride = {1, 16, 16}});
  check<TypeParam>(
      {.batch = 1, .in = 3, .out = 20, .size = {1, 40, 40}, .kernel = {1, 7, 7}, .stride = {1, 2, 2}, .padding = {0, 3, 3}});
}

TYPED_TEST(ConvolutionTest, LinesOfWholeVectors) {
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t dilation : {1, 2}) {
      const int64_t reach = 6 * dilation + 1, size = 31 * stride + reach - 6;
      check<TypeParam>({.batch = 2,
                        .in = 6,
                        .out = 20,
                        .groups = 2,
                        .size = {1, size, size},
                        .kernel = {1, 7, 7},
                        .stride = {1, stride, stride},
                        .padding = {0, 3, 3},
                        .dilation = {1, dilation, dilation}});
    }
  check<TypeParam>({.in = 3, .out = 17, .size = {4, 9, 16}, .kernel = {3, 3, 3}, .padding = {1, 1, 1}});
  check<TypeParam>({.batch = 1, .in = 50, .out = 9, .size = {1, 6, 16}, .padding = {0, 1, 1}, .bias = false});
  check<TypeParam>({.in = 2, .out = 8, .size = {1, 1, 70}, .kernel = {1, 1, 12}, .stride = {1, 1, 2}, .padding = {0, 0, 2}});
  check<TypeParam>({.in = 2, .out = 8, .size = {1, 1, 113}, .kernel = {1, 1, 20}, .stride = {1, 1, 3}});
}

TYPED_TEST(ConvolutionTest, PaddingBeyondTheImage) {
  check<TypeParam>({.size = {1, 2, 2}, .padding = {0, 5, 5}});
  check<TypeParam>({.size = {1, 2, 2}, .stride = {1, 3, 3}, .padding = {0, 6, 6}});
  check<TypeParam>({.in = 4, .out = 4, .groups = 4, .size = {1, 2, 2}, .padding = {0, 5, 5}});
}

TYPED_TEST(ConvolutionTest, NothingInNothingOut) {
  check<TypeParam>({.batch = 0});
  check<TypeParam>({.in = 0, .out = 3});
}

TYPED_TEST(ConvolutionTest, ThreadsDoNotChangeTheResult) {
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    check<TypeParam>({.batch = 3, .in = 16, .out = 32, .size = {1, 20, 20}, .padding = {0, 1, 1}});
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace calque::convolution_test
