// The same bits every time for a given number of threads: the operators that sum over many numbers, at sizes that take each of
// their kernels' ways, run again on fresh copies of their inputs, and beside another thread that keeps the pool busy.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "calque/base/thread.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/softmax.h"
#include "calque/tensor/generator.h"

namespace calque::determinism_test {
namespace {

using Tensors = std::vector<Tensor>;

struct Case {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;
  std::function<Tensor(const Tensors&)> call;
};

class ThreadsGuard {
 public:
  ~ThreadsGuard() { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

std::vector<Case> products() {
  std::vector<Case> cases;
  const auto add_matmul = [&](const std::string& name, int64_t m, int64_t k, int64_t n) {
    cases.push_back({"matmul " + name, {{m, k}, {k, n}}, [](const Tensors& t) { return matmul(t[0], t[1]); }});
    cases.push_back({"linear " + name, {{m, k}, {n, k}, {n}}, [](const Tensors& t) { return linear(t[0], t[1], t[2]); }});
  };
  add_matmul("one row", 1, 768, 1000);
  add_matmul("one row, deep", 1, 5000, 320);
  add_matmul("few rows", 8, 600, 900);
  add_matmul("few columns", 900, 600, 3);
  add_matmul("square", 200, 200, 200);
  add_matmul("deep", 40, 4000, 64);
  add_matmul("many rows", 700, 100, 130);
  add_matmul("odd", 37, 131, 77);
  cases.push_back({"bmm", {{12, 64, 48}, {12, 48, 96}}, [](const Tensors& t) { return bmm(t[0], t[1]); }});
  cases.push_back({"bmm of rows", {{16, 1, 128}, {16, 128, 256}}, [](const Tensors& t) { return bmm(t[0], t[1]); }});
  cases.push_back(
      {"bmm, transposed", {{5, 33, 70}, {5, 90, 70}}, [](const Tensors& t) { return bmm(t[0], t[1].transpose(1, 2)); }});
  return cases;
}

std::vector<Case> convolutions() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, std::vector<int64_t> image, std::vector<int64_t> weight,
                       std::vector<int64_t> stride, std::vector<int64_t> padding, int64_t groups) {
    const int64_t channels = weight[0];
    cases.push_back({name, {std::move(image), std::move(weight), {channels}}, [=](const Tensors& t) {
                       const SymInts steps(stride.begin(), stride.end()), edges(padding.begin(), padding.end());
                       if (stride.size() == 1) return conv1d(t[0], t[1], t[2], steps, edges, {1}, groups);
                       return conv2d(t[0], t[1], t[2], steps, edges, {1, 1}, groups);
                     }});
  };
  add("conv2d stem", {1, 3, 64, 64}, {24, 3, 7, 7}, {2, 2}, {3, 3}, 1);
  add("conv2d patches", {2, 3, 56, 56}, {64, 3, 14, 14}, {14, 14}, {0, 0}, 1);
  add("conv2d 3x3", {1, 40, 28, 28}, {48, 40, 3, 3}, {1, 1}, {1, 1}, 1);
  add("conv2d 3x3, lines of whole vectors", {1, 8, 32, 32}, {20, 8, 3, 3}, {1, 1}, {1, 1}, 1);
  add("conv2d pointwise", {1, 96, 20, 20}, {64, 96, 1, 1}, {1, 1}, {0, 0}, 1);
  add("conv2d depthwise", {2, 32, 30, 30}, {32, 1, 3, 3}, {1, 1}, {1, 1}, 32);
  add("conv2d groups", {2, 24, 20, 20}, {36, 8, 3, 3}, {2, 2}, {1, 1}, 3);
  add("conv1d", {1, 64, 400}, {64, 64, 3}, {2}, {0}, 1);
  add("conv1d stem", {1, 1, 4000}, {96, 1, 10}, {5}, {0}, 1);
  return cases;
}

std::vector<Case> others() {
  std::vector<Case> cases;
  const auto add_attention = [&](const std::string& name, std::vector<int64_t> q, std::vector<int64_t> k, bool causal,
                                 bool shared) {
    cases.push_back({"attention " + name, {std::move(q), k, k}, [=](const Tensors& t) {
                       return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.0, causal, std::nullopt, shared);
                     }});
  };
  add_attention("short, causal", {1, 6, 64, 64}, {1, 6, 64, 64}, true, false);
  add_attention("long", {1, 3, 300, 64}, {1, 3, 300, 64}, false, false);
  add_attention("one query", {2, 4, 1, 32}, {2, 4, 500, 32}, false, false);
  add_attention("shared keys", {1, 8, 5, 48}, {1, 2, 130, 48}, true, true);
  cases.push_back({"sum of all", {{300, 1001}}, [](const Tensors& t) { return sum(t[0]); }});
  for (const int64_t dim : {int64_t{0}, int64_t{1}, int64_t{2}}) {
    cases.push_back(
        {"sum over " + std::to_string(dim), {{70, 90, 33}}, [=](const Tensors& t) { return sum(t[0], {{dim}}); }});
    cases.push_back(
        {"softmax over " + std::to_string(dim), {{70, 90, 33}}, [=](const Tensors& t) { return softmax(t[0], dim); }});
  }
  cases.push_back(
      {"layer_norm", {{200, 768}, {768}, {768}}, [](const Tensors& t) { return layer_norm(t[0], {768}, t[1], t[2]); }});
  cases.push_back({"layer_norm of one row", {{1, 40000}}, [](const Tensors& t) { return layer_norm(t[0], {40000}); }});
  return cases;
}

Tensors inputs_of(const Case& c, DType dtype) {
  default_generator().manual_seed(1);
  Tensors inputs;
  for (const std::vector<int64_t>& shape : c.shapes) inputs.push_back(randn(SymInts(shape.begin(), shape.end())).to(dtype));
  return inputs;
}

Tensors copies_of(const Tensors& inputs) {
  Tensors copies;
  for (const Tensor& t : inputs) copies.push_back(t.clone());
  return copies;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == y.nbytes() && std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

void expect_repeats(const std::vector<Case>& cases) {
  const ThreadsGuard guard;
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const int threads : {1, 2, 3, 4}) {
      set_num_threads(threads);
      for (const Case& c : cases) {
        const Tensors inputs = inputs_of(c, dtype);
        const Tensor first = c.call(inputs);
        for (int i = 0; i < 3; ++i)
          EXPECT_TRUE(same_bits(first, c.call(copies_of(inputs))))
              << c.name << ", " << name(dtype) << ", " << threads << " threads";
      }
    }
}

TEST(Determinism, matrix_products_repeat_their_bits) { expect_repeats(products()); }
TEST(Determinism, convolutions_repeat_their_bits) { expect_repeats(convolutions()); }
TEST(Determinism, attention_reductions_and_norms_repeat_their_bits) { expect_repeats(others()); }

TEST(Determinism, a_busy_pool_does_not_change_the_bits) {
  const ThreadsGuard guard;
  set_num_threads(3);
  std::vector<Case> cases = products();
  for (std::vector<Case> more : {convolutions(), others()}) cases.insert(cases.end(), more.begin(), more.end());
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    std::vector<Tensors> inputs;
    Tensors alone;
    for (const Case& c : cases) {
      inputs.push_back(inputs_of(c, dtype));
      alone.push_back(c.call(inputs.back()));
    }
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop)
        for (size_t i = 0; i < cases.size() && !stop; ++i) cases[i].call(inputs[i]);
    });
    for (size_t i = cases.size(); i-- > 0;)
      EXPECT_TRUE(same_bits(alone[i], cases[i].call(inputs[i]))) << cases[i].name << ", " << name(dtype);
    stop = true;
    other.join();
  }
}

}  // namespace
}  // namespace calque::determinism_test
