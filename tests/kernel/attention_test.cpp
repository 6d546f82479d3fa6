#include "kernel/cpu/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"

namespace calque::attention_test {
namespace {

template <class T>
double to_double(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(static_cast<float>(x));
}

struct Case {
  int64_t batch = 1, heads = 2, q_length = 5, kv_length = 7, head_dim = 16, value_dim = 16, group = 1;
  MaskKind mask = MaskKind::none;
  bool causal = false;
  bool transposed = false;  // [batch, length, heads, dim] in memory, as projections make it
  bool mask_per_head = false, mask_one_row = false;
  double masked_share = 0.3;
};

std::string name(const Case& c) {
  return "b" + std::to_string(c.batch) + " h" + std::to_string(c.heads) + " q" + std::to_string(c.q_length) + " kv" +
         std::to_string(c.kv_length) + " d" + std::to_string(c.head_dim) + " e" + std::to_string(c.value_dim) + " g" +
         std::to_string(c.group) + " mask" + std::to_string(static_cast<int>(c.mask)) + (c.causal ? " causal" : "") +
         (c.transposed ? " transposed" : "");
}

void strides_of(int64_t heads, int64_t length, int64_t dim, bool transposed, int64_t (&strides)[3]) {
  strides[0] = heads * length * dim;
  strides[1] = transposed ? dim : length * dim;
  strides[2] = transposed ? heads * dim : dim;
}

template <class T>
std::vector<T> random_values(int64_t count, std::mt19937& generator) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& x : values) x = T(normal(generator));
  return values;
}

template <class T>
void check(const Case& c) {
  std::mt19937 generator(static_cast<unsigned>(c.q_length * 131 + c.kv_length * 7 + c.head_dim));
  const int64_t kv_heads = c.heads / c.group;
  const auto q = random_values<T>(c.batch * c.heads * c.q_length * c.head_dim, generator);
  const auto k = random_values<T>(c.batch * kv_heads * c.kv_length * c.head_dim, generator);
  const auto v = random_values<T>(c.batch * kv_heads * c.kv_length * c.value_dim, generator);
  std::vector<T> out(static_cast<size_t>(c.batch * c.heads * c.q_length * c.value_dim));
  std::vector<Accumulate<T>> logsumexp(static_cast<size_t>(c.batch * c.heads * c.q_length));
  Attention<T> g;
  g.batch = c.batch, g.heads = c.heads, g.q_length = c.q_length, g.kv_length = c.kv_length;
  g.head_dim = c.head_dim, g.value_dim = c.value_dim, g.group = c.group, g.causal = c.causal;
  g.q = q.data(), g.k = k.data(), g.v = v.data(), g.out = out.data(), g.logsumexp = logsumexp.data();
  strides_of(c.heads, c.q_length, c.head_dim, c.transposed, g.q_strides);
  strides_of(kv_heads, c.kv_length, c.head_dim, c.transposed, g.k_strides);
  strides_of(kv_heads, c.kv_length, c.value_dim, c.transposed, g.v_strides);
  strides_of(c.heads, c.q_length, c.value_dim, c.transposed, g.out_strides);
  g.logsumexp_strides[0] = c.heads * c.q_length, g.logsumexp_strides[1] = c.q_length, g.logsumexp_strides[2] = 1;
  g.scale = 1 / std::sqrt(static_cast<double>(c.head_dim));

  const int64_t mask_rows = c.mask_one_row ? 1 : c.q_length, mask_heads = c.mask_per_head ? c.heads : 1;
  const int64_t mask_size = c.batch * mask_heads * mask_rows * c.kv_length;
  std::vector<uint8_t> boolean(static_cast<size_t>(mask_size));
  std::vector<float> added(boolean.size());
  std::vector<T> added_same(boolean.size());
  std::uniform_real_distribution<double> uniform(0, 1);
  for (size_t i = 0; i < boolean.size(); ++i) {
    boolean[i] = uniform(generator) >= c.masked_share;
    added[i] = boolean[i] ? static_cast<float>(static_cast<int>(i % 5)) / 4 : -std::numeric_limits<float>::infinity();
    added_same[i] = T(added[i]);
  }
  g.mask_kind = c.mask;
  if (c.mask == MaskKind::boolean) g.mask = boolean.data();
  if (c.mask == MaskKind::additive) g.mask = added_same.data();
  if (c.mask == MaskKind::additive_float) g.mask = added.data();
  g.mask_strides[0] = mask_heads * mask_rows * c.kv_length;
  g.mask_strides[1] = c.mask_per_head ? mask_rows * c.kv_length : 0;
  g.mask_strides[2] = c.mask_one_row ? 0 : c.kv_length;
  g.mask_strides[3] = 1;
  attention(g);

  const double unit = std::is_same_v<T, double> ? 1e-13 : 4e-6;
  double half_unit = 0;
  if (std::is_same_v<T, BFloat16>) half_unit = 0x1p-8;
  if (std::is_same_v<T, Half>) half_unit = 0x1p-11;
  // bfloat16 weights are rounded before they meet the values, as PyTorch does too.
  const double weight_unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.q_length; ++i) {
        std::vector<double> score(static_cast<size_t>(c.kv_length));
        double top = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < c.kv_length; ++j) {
          double s = 0;
          for (int64_t d = 0; d < c.head_dim; ++d)
            s += to_double(q[static_cast<size_t>(b * g.q_strides[0] + h * g.q_strides[1] + i * g.q_strides[2] + d)]) *
                 to_double(
                     k[static_cast<size_t>(b * g.k_strides[0] + h / c.group * g.k_strides[1] + j * g.k_strides[2] + d)]);
          s *= g.scale;
          const auto m = static_cast<size_t>(b * g.mask_strides[0] + h * g.mask_strides[1] + i * g.mask_strides[2] + j);
          if (c.mask == MaskKind::boolean && boolean[m] == 0) s = -std::numeric_limits<double>::infinity();
          if (c.mask == MaskKind::additive) s += to_double(added_same[m]);
          if (c.mask == MaskKind::additive_float) s += added[m];
          if (c.causal && j > i) s = -std::numeric_limits<double>::infinity();
          score[static_cast<size_t>(j)] = s;
          top = std::max(top, s);
        }
        double sum = 0;
        for (double& s : score) sum += s = std::isinf(top) ? 0 : std::exp(s - top);
        const double lse = sum == 0 ? 0 : top + std::log(sum);
        ASSERT_NEAR(to_double(logsumexp[static_cast<size_t>((b * c.heads + h) * c.q_length + i)]), lse, 10 * unit)
            << name(c);
        for (int64_t d = 0; d < c.value_dim; ++d) {
          double o = 0, absolute = 0;
          for (int64_t j = 0; j < c.kv_length; ++j) {
            const double term =
                score[static_cast<size_t>(j)] *
                to_double(
                    v[static_cast<size_t>(b * g.v_strides[0] + h / c.group * g.v_strides[1] + j * g.v_strides[2] + d)]);
            o += term;
            absolute += std::abs(term);
          }
          if (sum != 0) o /= sum, absolute /= sum;
          const double found =
              to_double(out[static_cast<size_t>(b * g.out_strides[0] + h * g.out_strides[1] + i * g.out_strides[2] + d)]);
          ASSERT_NEAR(found, o, unit * (1 + std::abs(o)) + half_unit * std::abs(o) + weight_unit * absolute)
              << name(c) << " i=" << i << " d=" << d;
        }
      }
}

template <class T>
class AttentionTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, BFloat16, Half>;
TYPED_TEST_SUITE(AttentionTest, Types);

TYPED_TEST(AttentionTest, ManyLengthsAndDims) {
  for (const int64_t q : {1, 2, 15, 16, 17, 47, 49, 100})
    for (const int64_t kv : {1, 3, 127, 128, 129, 300}) check<TypeParam>({.q_length = q, .kv_length = kv});
  for (const int64_t d : {1, 3, 8, 20, 64, 80, 128})
    check<TypeParam>({.q_length = 33, .kv_length = 50, .head_dim = d, .value_dim = d});
  check<TypeParam>({.q_length = 20, .kv_length = 30, .head_dim = 24, .value_dim = 7});
}

TYPED_TEST(AttentionTest, CausalForEveryPairOfLengths) {
  for (const int64_t q : {1, 5, 48, 130, 260})
    for (const int64_t kv : {1, 5, 48, 130, 260}) check<TypeParam>({.q_length = q, .kv_length = kv, .causal = true});
}

TYPED_TEST(AttentionTest, Masks) {
  for (const auto mask : {MaskKind::boolean, MaskKind::additive, MaskKind::additive_float})
    for (const bool one_row : {false, true})
      for (const bool per_head : {false, true})
        for (const int64_t q : {1, 9, 50}) {
          check<TypeParam>({.batch = 2,
                            .q_length = q,
                            .kv_length = 140,
                            .mask = mask,
                            .mask_per_head = per_head,
                            .mask_one_row = one_row});
          check<TypeParam>({.batch = 2,
                            .heads = 4,
                            .q_length = q,
                            .kv_length = 40,
                            .group = 2,
                            .mask = mask,
                            .mask_per_head = per_head,
                            .mask_one_row = one_row});
        }
}

TYPED_TEST(AttentionTest, FullyMaskedRowsGiveZero) {
  for (const auto mask : {MaskKind::boolean, MaskKind::additive})
    check<TypeParam>({.q_length = 20, .kv_length = 150, .mask = mask, .masked_share = 1.1});
  check<TypeParam>({.q_length = 3, .kv_length = 0});
}

TYPED_TEST(AttentionTest, GroupedQueriesAndTransposedMemory) {
  for (const int64_t group : {1, 2, 4})
    for (const int64_t q : {1, 3, 13, 60})
      for (const bool causal : {false, true})
        check<TypeParam>(
            {.batch = 2, .heads = 8, .q_length = q, .kv_length = 70, .group = group, .causal = causal, .transposed = true});
}

TYPED_TEST(AttentionTest, ThreadsDoNotChangeTheResult) {
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    check<TypeParam>({.batch = 2, .heads = 3, .q_length = 200, .kv_length = 200, .causal = true});
  }
  set_num_threads(before);
}

TEST(Attention, nan_in_a_key_reaches_every_row_that_sees_it) {
  std::vector<float> q(2 * 4, 1), k(3 * 4, 1), v(3 * 4, 1), out(2 * 4);
  k[4 * 1] = std::numeric_limits<float>::quiet_NaN();
  Attention<float> g;
  g.batch = g.heads = 1, g.q_length = 2, g.kv_length = 3, g.head_dim = g.value_dim = 4;
  g.q = q.data(), g.k = k.data(), g.v = v.data(), g.out = out.data();
  g.q_strides[2] = g.k_strides[2] = g.v_strides[2] = g.out_strides[2] = 4;
  g.causal = true;
  attention(g);
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(std::isnan(out[4]));
}

}  // namespace
}  // namespace calque::attention_test
