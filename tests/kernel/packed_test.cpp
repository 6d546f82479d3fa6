// Products with packed weights beside products that pack by themselves.
#include "kernel/cpu/gemm/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernel/cpu/gemm/gemm.h"

namespace calque::packed_test {
namespace {

std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] = static_cast<float>((i * 7919 + seed * 31) % 401 - 200) / 97;
  return out;
}

TEST(PackedWeights, multiply_as_the_weights_themselves) {
  for (const bool transposed : {false, true})
    for (const int64_t n : {48, 50, 95, 96, 480, 529, 1000})
      for (const int64_t k : {1, 16, 383, 384, 400, 1024})
        for (const int64_t m : {1, 3, 8, 16, 24, 25, 33, 130}) {
          const std::vector<float> a = numbers(m * k, 1), b = numbers(n * k, 2), bias = numbers(n, 3);
          const int64_t b_row = transposed ? 1 : n, b_col = transposed ? k : 1;
          std::vector<float> packed(static_cast<size_t>(kernel::packed_numbers(n, k)));
          kernel::pack_weights(n, k, b.data(), b_row, b_col, packed.data());
          std::vector<float> found(static_cast<size_t>(m * n), NAN), expected(found);
          kernel::multiply_packed(m, a.data(), k, {n, k, packed.data()}, bias.data(), 1, found.data());
          Gemm<float> g;
          g.m = m, g.n = n, g.k = k;
          g.a = a.data(), g.a_row = k;
          g.b = b.data(), g.b_row = b_row, g.b_col = b_col;
          g.c = expected.data(), g.c_row = n;
          g.bias = bias.data();
          gemm(g);
          double worst = 0;
          for (size_t i = 0; i < found.size(); ++i)
            worst = std::max(worst, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
          EXPECT_LE(worst, 2e-6 * static_cast<double>(k) * 4)
              << m << " x " << k << " x " << n << (transposed ? ", transposed" : "");
        }
}

}  // namespace
}  // namespace calque::packed_test
