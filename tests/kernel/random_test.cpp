#include "kernel/cpu/random/random.h"
#include "calque/op/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "calque/base/warning.h"
#include "calque/tensor/generator.h"
#include "kernel/cpu/random/box_muller.h"
#include "random_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::random_test {
namespace {

const std::string golden = test::source_folder() + "/tests/kernel/golden/";

// Floats as integers whose differences are ulps.
template <class Bits>
int64_t distance(const uint8_t* a, const uint8_t* b) {
  const auto ordered = [](const uint8_t* p) {
    Bits bits;
    std::memcpy(&bits, p, sizeof bits);
    const auto wide = static_cast<int64_t>(bits);
    return wide < 0 ? static_cast<int64_t>(std::numeric_limits<Bits>::min()) - wide : wide;
  };
  const int64_t x = ordered(a);
  const int64_t y = ordered(b);
  return static_cast<int64_t>(x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                                    : static_cast<uint64_t>(y) - static_cast<uint64_t>(x));
}

int64_t worst_distance(DType dtype, const std::vector<uint8_t>& a, const uint8_t* b) {
  const size_t size = item_size(to_real(dtype));
  int64_t worst = 0;
  for (size_t i = 0; i < a.size(); i += size) {
    const auto* x = a.data() + i;
    const auto* y = b + i;
    worst = std::max(worst, size == 2   ? distance<int16_t>(x, y)
                            : size == 4 ? distance<int32_t>(x, y)
                                        : distance<int64_t>(x, y));
  }
  return worst;
}

using test::error_of;

Tensor empty(IntList sizes, DType dtype = DType::float32) { return make_tensor(sizes, dtype); }

template <class T>
std::vector<T> values(const Tensor& t) {
  const T* data = t.data_as<T>();
  return {data, data + t.numel()};
}

TEST(RandomGolden, every_call_answers_as_pytorch_did) {
  std::ifstream script(golden + "random.script");
  std::ifstream file(golden + "random.bin", std::ios::binary);
  const std::vector<uint8_t> expected{std::istreambuf_iterator<char>(file), {}};
  size_t at = 0;
  const std::vector<RandomResult> results = run_random_script(script);
  ASSERT_GT(results.size(), 900U);
  for (const RandomResult& r : results) {
    ASSERT_LE(at + r.bytes.size(), expected.size());
    const uint8_t* want = expected.data() + at;
    at += r.bytes.size();
    if (r.is_state) {
      // The cached sample (bytes 5024 to 5031) is a product of libm.
      EXPECT_TRUE(std::equal(r.bytes.begin(), r.bytes.begin() + 5024, want)) << "a state differs";
      EXPECT_LE(distance<int64_t>(r.bytes.data() + 5024, want + 5024), 4);
      EXPECT_TRUE(std::equal(r.bytes.begin() + 5032, r.bytes.end(), want + 5032)) << "a state's flags differ";
    } else if (r.exact) {
      EXPECT_TRUE(std::equal(r.bytes.begin(), r.bytes.end(), want)) << r.line;
    } else {
      EXPECT_LE(worst_distance(r.dtype, r.bytes, want), 4) << r.line;
    }
  }
  EXPECT_EQ(at, expected.size());
}

TEST(Generator, known_first_numbers_of_mt19937) {
  Generator g(5489);
  EXPECT_EQ(g.random(), 3499211612U);
  EXPECT_EQ(g.random(), 581869302U);
  for (int i = 2; i < 9999; ++i) g.random();
  EXPECT_EQ(g.random(), 4123659995U);  // the ten thousandth, which the C++ standard fixes
}

TEST(Generator, seed_keeps_all64_bits_but_the_low32_choose_the_stream) {
  Generator a(7);
  Generator b((1ULL << 40) + 7);
  EXPECT_EQ(b.initial_seed(), (1ULL << 40) + 7);
  EXPECT_EQ(a.random64(), b.random64());
}

TEST(Generator, state_restores_stream_and_cached_sample) {
  Generator g(3);
  const Tensor three = empty({3});
  normal_kernel(three, 0, 1, &g);
  const std::vector<uint8_t> state = g.get_state();
  ASSERT_EQ(state.size(), Generator::state_bytes);
  const Tensor first = empty({7});
  normal_kernel(first, 0, 1, &g);
  Generator other;
  other.set_state(state);
  EXPECT_EQ(other.get_state(), state);
  const Tensor second = empty({7});
  normal_kernel(second, 0, 1, &other);
  EXPECT_EQ(values<float>(first), values<float>(second));
}

TEST(Generator, clone_continues_on_its_own) {
  Generator g(11);
  g.random();
  const auto copy = g.clone();
  EXPECT_EQ(copy->get_state(), g.get_state());
  const uint64_t next = g.random64();
  EXPECT_EQ(copy->random64(), next);
}

TEST(Generator, refuses_bytes_that_are_no_state) {
  Generator g(1);
  const std::vector<uint8_t> before = g.get_state();
  EXPECT_EQ(error_of([&] { g.set_state(std::vector<uint8_t>(10)); }),
            "Generator::set_state: expected a state of 5056 bytes, found 10");
  EXPECT_NE(error_of([&] { g.set_state(std::vector<uint8_t>(5056)); }).find("no state of a seeded MT19937"),
            std::string::npos);
  // A block position past the end, which would be read.
  std::vector<uint8_t> hostile = before;
  const int32_t left = 624;
  const uint64_t next = 600;
  std::memcpy(hostile.data() + 8, &left, sizeof left);
  std::memcpy(hostile.data() + 16, &next, sizeof next);
  EXPECT_NE(error_of([&] { g.set_state(hostile); }).find("left 624, next 600"), std::string::npos);
  EXPECT_EQ(g.get_state(), before);
}

TEST(Generator, manual_seed_restarts_the_default_generator) {
  manual_seed(5);
  const Tensor a = empty({20});
  uniform_kernel(a, 0, 1, nullptr);
  EXPECT_EQ(default_generator().initial_seed(), 5U);
  manual_seed(5);
  const Tensor b = empty({20});
  uniform_kernel(b, 0, 1, nullptr);
  EXPECT_EQ(values<float>(a), values<float>(b));
  EXPECT_NE(default_generator().seed(), default_generator().seed());
}

TEST(Random, concurrent_fills_each_take_a_whole_run) {
  Generator g(9);
  std::vector<std::vector<int64_t>> drawn(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : drawn)
      threads.emplace_back([&] {
        const Tensor t = empty({500}, DType::int64);
        random_kernel(t, &g);
        mine = values<int64_t>(t);
      });
  }
  Generator serial(9);
  const Tensor all = empty({2000}, DType::int64);
  random_kernel(all, &serial);
  const auto expected = values<int64_t>(all);
  for (const auto& mine : drawn) {
    const auto start = std::find(expected.begin(), expected.end(), mine[0]);
    ASSERT_LE(500, expected.end() - start);
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), start));
  }
}

TEST(Random, a_transposed_output_is_filled_in_memory_order) {
  Generator g(1);
  const Tensor plain = empty({3, 4});
  uniform_kernel(plain, 0, 1, &g);
  g.manual_seed(1);
  const Tensor base = empty({3, 4});
  uniform_kernel(make_view(base, {4, 3}, {1, 4}, 0), 0, 1, &g);
  EXPECT_EQ(values<float>(plain), values<float>(base));
}

TEST(Random, every_instruction_set_gives_the_same_normals) {
  Generator g(1);
  for (int round = 0; round < 2000; ++round) {
    float a[box_muller_block];
    float b[box_muller_block];
    for (int i = 0; i < box_muller_block; ++i) a[i] = b[i] = static_cast<float>(g.random() >> 8) * 0x1p-24F;
    best_box_muller().f32(a, 0.5F, 1.25F);
    generic::box_muller.f32(b, 0.5F, 1.25F);
    ASSERT_EQ(std::memcmp(a, b, sizeof a), 0);
  }
}

TEST(Random, empty_outputs_draw_nothing_but_are_checked) {
  Generator g(1);
  const auto before = g.get_state();
  uniform_kernel(empty({0, 3}), 0, 1, &g);
  normal_kernel(empty({0}), 0, 1, &g);
  randperm_kernel(empty({0}, DType::int64), &g);
  random_from_to_kernel(empty({0}, DType::int64), 0, 5, &g);
  EXPECT_EQ(g.get_state(), before);
  EXPECT_EQ(error_of([&] { random_from_to_kernel(empty({0}, DType::uint8), 0, 257, &g); }),
            "random_: to - 1 = 256 is out of bounds for uint8");
}

TEST(Random, float_ranges_beyond_the_exact_integers_warn) {
  Generator g(1);
  const uint64_t before = warning_count();
  random_from_to_kernel(empty({3}), 0, 1 << 20, &g);
  EXPECT_EQ(warning_count(), before);
  random_from_to_kernel(empty({3}), 0, int64_t{1} << 26, &g);
  EXPECT_EQ(warning_count(), before + 1);
}

TEST(Random, large_permutations_count_every_element_once) {
  Generator g(1);
  const Tensor t = empty({100000}, DType::int32);
  randperm_kernel(t, &g);
  auto seen = values<int32_t>(t);
  std::sort(seen.begin(), seen.end());
  std::vector<int32_t> expected(100000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(RandomErrors, name_operator_argument_and_value) {
  Generator g(1);
  const auto f32 = empty({3});
  const auto f16 = empty({3}, DType::float16);
  const auto u8 = empty({3}, DType::uint8);
  const auto i64 = empty({3}, DType::int64);
  EXPECT_EQ(error_of([&] { uniform_kernel(f32, 1, 0, &g); }),
            "uniform_: expected a range [from, to), found from = 1 > to = 0");
  EXPECT_EQ(error_of([&] { uniform_kernel(f16, 0, 1e6, &g); }), "uniform_: to = 1e+06 is out of bounds for float16");
  EXPECT_EQ(error_of([&] { uniform_kernel(f32, -3e38, 3e38, &g); }),
            "uniform_: to - from exceeds the largest float32, found from = -3e+38, to = 3e+38");
  EXPECT_EQ(error_of([&] { uniform_kernel(i64, 0, 1, &g); }),
            "uniform_: no kernel for an output of dtype int64; expected float16, bfloat16, float32 or float64");
  EXPECT_EQ(error_of([&] { normal_kernel(f32, 0, -1, &g); }), "normal_: expected std >= 0, found -1");
  EXPECT_EQ(error_of([&] { log_normal_kernel(f32, 0, 0, &g); }), "log_normal_: expected std > 0, found 0");
  EXPECT_EQ(error_of([&] { exponential_kernel(f32, 0, &g); }), "exponential_: expected lambda > 0, found 0");
  EXPECT_EQ(error_of([&] { cauchy_kernel(f32, 0, 0, &g); }), "cauchy_: expected sigma > 0, found 0");
  EXPECT_EQ(error_of([&] { geometric_kernel(f32, 1, &g); }), "geometric_: expected p in (0, 1), found 1");
  EXPECT_EQ(error_of([&] { bernoulli_kernel(f32, 1.5, &g); }), "bernoulli_: expected p in [0, 1], found 1.5");
  EXPECT_EQ(error_of([&] {
              bernoulli_kernel(f32, tensor_of<float>({0.5F, 2.0F, 0.5F}, {3}), &g);
            }),
            "bernoulli_: expected every p in [0, 1], found 2");
  EXPECT_EQ(error_of([&] {
              bernoulli_kernel(f32, tensor_of<float>({0.5F, 0.5F}, {2}), &g);
            }),
            "bernoulli_: the probabilities' sizes [2] do not broadcast to the output's [3]");
  EXPECT_NE(error_of([&] { bernoulli_kernel(f32, i64, &g); }).find("argument p"), std::string::npos);
  EXPECT_EQ(error_of([&] { random_from_to_kernel(f32, 5, 5, &g); }), "random_: expected from < to, found from = 5, to = 5");
  EXPECT_EQ(error_of([&] { random_from_to_kernel(u8, -1, 2, &g); }), "random_: from = -1 is out of bounds for uint8");
  EXPECT_EQ(error_of([&] { random_from_to_kernel(f16, 0, 70000, &g); }),
            "random_: to - 1 = 69999 is out of bounds for float16");
  EXPECT_NE(error_of([&] {
              random_from_to_kernel(u8, std::numeric_limits<int64_t>::min(), std::nullopt, &g);
            }).find("all 64 bits"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { randperm_kernel(empty({257}, DType::uint8), &g); }),
            "randperm: n = 257 is more than uint8 can count; expected at most 256");
  const Tensor expanded = make_view(empty({1}), {3}, {0}, 0);
  EXPECT_EQ(error_of([&] { normal_kernel(expanded, 0, 1, &g); }),
            "normal_: more than one element of the written-to tensor refers to a single memory location (sizes [3], "
            "strides [0]); clone() it first");
}

TEST(RandomErrors, multinomial_checks_weights_and_counts) {
  Generator g(1);
  const auto weights = [](std::initializer_list<float> w) { return tensor_of<float>(w, {static_cast<int64_t>(w.size())}); };
  const auto draw = [&](const Tensor& w, int64_t n, bool replacement) {
    return error_of([&] { multinomial_kernel(empty({n}, DType::int64), w, replacement, &g); });
  };
  EXPECT_EQ(draw(weights({1, 2}), 2, false), "");
  EXPECT_EQ(draw(weights({1, 2}), 3, false), "multinomial: cannot draw num_samples = 3 of 2 categories without replacement");
  EXPECT_EQ(draw(weights({1, 2}), 3, true), "");
  EXPECT_EQ(draw(weights({1, 2}), 0, true), "multinomial: expected num_samples > 0, found 0");
  EXPECT_EQ(draw(weights({0, 0}), 1, true), "multinomial: expected a positive sum of weights, found none above 0 in row 0");
  EXPECT_EQ(draw(weights({1, -2}), 1, false), "multinomial: expected finite weights >= 0, found -2 in row 0, category 1");
  EXPECT_NE(draw(weights({1, INFINITY}), 2, true).find("found inf"), std::string::npos);
  EXPECT_EQ(draw(empty({2}, DType::int64), 1, false),
            "multinomial: expected weights of a floating-point dtype, found int64");
}

}  // namespace
}  // namespace calque::random_test
